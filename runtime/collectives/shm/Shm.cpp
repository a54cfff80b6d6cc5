//===- Shm.cpp - Ranks as processes of one machine --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// In its call number n of exchange(), a rank writes to words[n % 2] of its slot. Call number n + 2
// may overwrite the data of call n, because each rank has read this data before it begins call n +
// 1, and call n + 1 waits for all ranks.
//
// collect() divides the data into segments, which it sends one after another through the mailbox of
// the sender. `sent` counts the segments that the sender has written, and `received` counts the
// segments that rank 0 has read.
//
// A separate thread increments the heartbeat of the process. The thread does so even while the rank
// writes files. A heartbeat that does not change therefore means that the process is stopped. While
// a program runs, the time limit of a wait begins again whenever the rank that is waited for makes
// progress. Between programs, the time limit begins again with each heartbeat of that rank's
// process.
//
//===----------------------------------------------------------------------===//

#include "collectives/shm/Shm.h"
#include "core/Agreement.h"
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr uint32_t pollMilliseconds = 20;
static constexpr uint32_t heartbeatMilliseconds = 100;

static_assert(sizeof Message::text > Agreement::limit, "an agreement is one message");

ShmCommunicator::ShmCommunicator(Mesh mesh, uint32_t rank, int descriptor,
                                 const std::string &agreement, double timeoutSeconds,
                                 uint32_t newSpins)
    : PeerMemory(std::move(mesh), LocalRanks{rank, 1}, nullptr), channel(descriptor),
      timeout(timeoutSeconds) {
  spins = newSpins;
  Message hello;
  hello.kind = Message::hello;
  hello.rank = rank;
  hello.ranks = ranks();
  hello.version = fsdprt_abi_version();
  std::strncpy(hello.text, agreement.c_str(), sizeof hello.text - 1);
  if (!channel.send(hello))
    throw Error(FSDPRT_LOST, format("rank %u: the process that started the ranks is gone", rank));
  int attached;
  receive(Message::welcome, attached);
  block = std::make_unique<SharedControlBlock>(attached);
  if (block->ranks() != ranks())
    badInput("expected a control block of %u ranks, found one of %u", ranks(), block->ranks());
  watchdog = block->watchdog(timeout);
  // Increment the heartbeat now, because 0 means that the process has not connected yet.
  beat();
  heart = std::thread([this] { beatHeart(); });
}

ShmCommunicator::~ShmCommunicator() {
  ending = true;
  endingEvent.notify();
  if (heart.joinable())
    heart.join();
}

void ShmCommunicator::beat() {
  block->rankSlot(firstRank()).heartbeat.fetch_add(1, std::memory_order_relaxed);
}

void ShmCommunicator::beatHeart() {
  while (!ending) {
    uint32_t seen = endingEvent.read();
    beat();
    if (channel.isClosed())
      watchdog->fail();
    checkWatcher();
    if (!ending)
      endingEvent.sleep(seen, heartbeatMilliseconds);
  }
}

/// If the heartbeat of the watching process no longer changes, kills this process, because a
/// process that is stopped would continue to exist after the ranks have ended. If the watching
/// process has started the ranks, the system kills them together with this process. In this case,
/// the reason is printed here. Like ProcessSupervisor, counts only the time in which the process
/// that executes this code runs.
void ShmCommunicator::checkWatcher() {
  Watcher &watcher = block->header().watcher;
  double now = monotonicSeconds(), since = now - lastLooked;
  uint64_t beats = watcher.heartbeat.load(std::memory_order_acquire);
  bool beatsOn = beats == 0 || beats != watcherBeats || lastLooked == 0;
  watcherSilent = beatsOn ? 0 : watcherSilent + std::min(since, 2e-3 * heartbeatMilliseconds);
  watcherBeats = beats;
  lastLooked = now;
  if (beatsOn || watcherSilent <= watcher.heartbeatSeconds || watcher.isSilent.exchange(1))
    return;
  watchdog->fail(FSDPRT_HUNG);
  if (watcher.startedRanks)
    std::fprintf(stderr, "%s: error: %s; ending it and all ranks\n", watcher.program,
                 watcher.silence().c_str());
  ::kill(static_cast<pid_t>(watcher.process), SIGKILL);
}

void ShmCommunicator::poll() {
  if (watchdog->hasFailed() && block->header().watcher.isSilent)
    throw Error(FSDPRT_HUNG,
                describeProgress(firstRank()) + ": " + block->header().watcher.silence());
  if (watchdog->hasFailed() && channel.isClosed())
    throw Error(FSDPRT_LOST,
                format("%s: the process that watches the ranks (started by rank 0) is gone",
                       describeProgress(firstRank()).c_str()));
  Communicator::poll();
}

/// Receives a message, which must have the kind `kind`. If other ranks are late, the host sends a
/// refusal when `timeout` has passed. This function waits longer than `timeout`. If the function
/// receives nothing in this time, the host does not answer.
Message ShmCommunicator::receive(Message::Kind kind, int &attached) {
  Message message;
  Channel::Received got = channel.receive(message, attached, timeout * 2 + 10);
  if (got == Channel::Received::message && message.kind == kind)
    return message;
  if (got == Channel::Received::message && message.kind == Message::refusal)
    throw Error(message.status == FSDPRT_ABANDONED ? FSDPRT_ABANDONED
                                                   : failureStatus(message.status),
                message.text);
  throw Error(FSDPRT_LOST,
              format("rank %u: the process that started the ranks %s", firstRank(),
                     got == Channel::Received::nothing ? "does not answer" : "is gone"));
}

uint64_t ShmCommunicator::scheduleHash() const {
  uint64_t hash = 0xcbf29ce484222325;
  auto add = [&](uint64_t value) {
    for (int i = 0; i < 8; ++i, value >>= 8)
      hash = (hash ^ (value & 0xff)) * 0x100000001b3;
  };
  for (const Collective &each : collectives) {
    const CollectiveKey &key = each.key;
    for (uint64_t value :
         {uint64_t(key.kind), uint64_t(key.reduction), uint64_t(key.dtype), key.count,
          uint64_t(key.root), uint64_t(key.id), uint64_t(key.axes.size())})
      add(value);
    for (uint32_t axis : key.axes)
      add(axis);
  }
  return hash;
}

void ShmCommunicator::writeNames() {
  for (uint32_t i = 0; i < numCollectives(); ++i)
    std::strncpy(block->name(i), describe(i).c_str(), SharedControlBlock::nameBytes - 1);
}

void ShmCommunicator::connect() {
  if (numCollectives() > block->collectives())
    badInput("expected at most %u collectives, found %llu", block->collectives(),
             (ull)numCollectives());
  Message arena;
  arena.kind = Message::arena;
  arena.rank = firstRank();
  arena.bytes = own.bytes;
  arena.schedule = scheduleHash();
  if (isRoot())
    writeNames();
  if (!channel.send(arena, own.descriptor))
    throw Error(FSDPRT_LOST,
                format("rank %u: the process that started the ranks is gone", firstRank()));
  pointers.assign(1, std::vector<const std::byte *>(ranks()));
  peers.resize(ranks());
  arenas.resize(ranks());
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    int attached;
    Message peer = receive(Message::peer, attached);
    if (peer.rank != rank || attached < 0)
      failed("rank %u: expected the arena of rank %u, found none", firstRank(), rank);
    if (rank != firstRank())
      arenas[rank] = std::make_unique<PeerArena>(attached, peer.bytes);
    close(attached);
    std::byte *base = rank == firstRank() ? own.base : arenas[rank]->data();
    peers[rank] = {block->slots(rank), &block->rankSlot(rank).event,
                   reinterpret_cast<uint64_t>(base)};
  }
}

template <typename Ready>
void ShmCommunicator::awaitDesk(uint32_t rank, const char *why, Ready ready) {
  ProgressTimeout progressTimeout(*watchdog);
  waitFor(block->rankSlot(firstRank()).event, spins, pollMilliseconds, ready, [&] {
    poll();
    if (progressTimeout.hasExpired(block->rankSlot(rank).heartbeat.load(std::memory_order_relaxed) +
                                   watchdog->beats(rank)))
      throw Error(FSDPRT_HUNG, format("rank %u waited %g s to %s for %s; it sent no heartbeat",
                                      firstRank(), timeout, why, describeProgress(rank).c_str()));
  });
}

void ShmCommunicator::exchange(const void *mine, size_t bytes, void *all) {
  // A rank whose exchanges never wait would otherwise not notice a failure.
  poll();
  SharedControlBlock::RankSlot &rankSlot = block->rankSlot(firstRank());
  uint64_t round = rankSlot.exchanges.load(std::memory_order_relaxed) + 1;
  if (bytes)
    std::memcpy(rankSlot.words[round % 2], mine, std::min(bytes, exchangeLimit));
  rankSlot.exchanges.store(round, std::memory_order_release);
  for (uint32_t rank = 0; rank < ranks(); ++rank)
    if (rank != firstRank())
      block->rankSlot(rank).event.notify();
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    SharedControlBlock::RankSlot &other = block->rankSlot(rank);
    awaitDesk(rank, "meet between programs",
              [&] { return other.exchanges.load(std::memory_order_acquire) >= round; });
    if (bytes)
      std::memcpy(static_cast<std::byte *>(all) + rank * bytes, other.words[round % 2],
                  std::min(bytes, exchangeLimit));
  }
}

void ShmCommunicator::collect(uint32_t rank, const void *data, size_t bytes, void *into) {
  if (rank == 0 && isRoot() && bytes)
    std::memcpy(into, data, bytes);
  if (rank == 0 || (!isRoot() && rank != firstRank()))
    return;
  SharedControlBlock::RankSlot &rankSlot = block->rankSlot(rank);
  for (size_t done = 0, part; done < bytes; done += part) {
    part = std::min(bytes - done, SharedControlBlock::mailboxBytes);
    uint64_t pieces =
        (isRoot() ? rankSlot.received : rankSlot.sent).load(std::memory_order_relaxed);
    if (isRoot()) {
      awaitDesk(rank, "collect",
                [&] { return rankSlot.sent.load(std::memory_order_acquire) > pieces; });
      std::memcpy(static_cast<std::byte *>(into) + done, rankSlot.mailbox, part);
      rankSlot.received.store(pieces + 1, std::memory_order_release);
      rankSlot.event.notify();
      continue;
    }
    awaitDesk(0, "send",
              [&] { return rankSlot.received.load(std::memory_order_acquire) == pieces; });
    std::memcpy(rankSlot.mailbox, static_cast<const std::byte *>(data) + done, part);
    rankSlot.sent.store(pieces + 1, std::memory_order_release);
    block->rankSlot(0).event.notify();
  }
}

void ShmCommunicator::leave() {
  barrier();
  block->rankSlot(firstRank()).finished.store(1, std::memory_order_release);
}
