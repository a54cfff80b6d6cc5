//===- MpiHeartbeat.cpp - Heartbeats over MPI -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A process sends a message to another process only after the previous message to it is complete.
// If the other process is stopped, the messages to it therefore do not fill more and more memory.
//
//===----------------------------------------------------------------------===//

#include "collectives/mpi/MpiHeartbeat.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;

static constexpr double secondsBetween = 0.1;
static constexpr double silentSeconds =
    1; // A process that has sent no message for this number of seconds is not told of failures.

MpiHeartbeat::MpiHeartbeat(MpiLibrary &mpi, Watchdog &watchdog, fsdprt_mpi_handle over, int tag)
    : mpi(mpi), watchdog(watchdog), over(over), tag(tag), peers(mpi.size()) {
  for (uint32_t rank = 0; rank < mpi.size(); ++rank) {
    peers[rank].sending = peers[rank].receiving = mpi.noRequest();
    if (rank != mpi.rank())
      listen(rank);
  }
}

/// If MPI may still read messages in `peers`, does not free `peers`.
MpiHeartbeat::~MpiHeartbeat() {
  bool pending = false;
  for (Peer &peer : peers) {
    mpi->cancel(&peer.receiving);
    pending |= peer.sending != mpi.noRequest();
  }
  if (pending)
    new std::vector<Peer>(std::move(peers));
}

void MpiHeartbeat::listen(uint32_t rank) {
  Peer &peer = peers[rank];
  mpi.check(
      mpi->receive(over, &peer.in, sizeof peer.in, static_cast<int>(rank), tag, &peer.receiving),
      "a receive");
}

MpiHeartbeat::Message MpiHeartbeat::describe() const {
  Message message = {};
  const RankProgress &progress = watchdog.progressOf(mpi.rank());
  message.beats = progress.beats.load(std::memory_order_relaxed);
  message.number = progress.number.load(std::memory_order_relaxed);
  message.command = progress.command.load(std::memory_order_relaxed);
  message.collective = progress.collective.load(std::memory_order_relaxed);
  message.failed = watchdog.failure();
  message.last = leaving;
  std::strncpy(message.program, watchdog.stringAt(progress.program.load(std::memory_order_relaxed)),
               sizeof message.program - 1);
  std::strncpy(message.label, watchdog.stringAt(progress.label.load(std::memory_order_relaxed)),
               sizeof message.label - 1);
  return message;
}

void MpiHeartbeat::take(uint32_t rank) {
  Peer &peer = peers[rank];
  const Message &message = peer.in;
  RankProgress &progress = watchdog.progressOf(rank);
  peer.turn ^= 1;
  std::memcpy(peer.program[peer.turn], message.program, sizeof message.program - 1);
  std::memcpy(peer.label[peer.turn], message.label, sizeof message.label - 1);
  progress.program.store(watchdog.offsetOf(peer.program[peer.turn]), std::memory_order_relaxed);
  progress.label.store(watchdog.offsetOf(peer.label[peer.turn]), std::memory_order_relaxed);
  progress.number.store(message.number, std::memory_order_relaxed);
  progress.command.store(message.command, std::memory_order_relaxed);
  progress.collective.store(message.collective, std::memory_order_relaxed);
  progress.beats.store(message.beats, std::memory_order_relaxed);
  peer.heard.fetch_add(1, std::memory_order_relaxed);
  peer.still = 0;
  peer.left = message.last != 0;
  if (message.failed && !message.last)
    watchdog.fail(std::min<uint32_t>(message.failed, FSDPRT_ABANDONED));
}

void MpiHeartbeat::tell(uint32_t rank, const Message &message) {
  Peer &peer = peers[rank];
  peer.out = message;
  peer.toldLast = message.last != 0;
  peer.toldFailure = message.failed != 0;
  mpi.check(mpi->send(over, &peer.out, sizeof peer.out, static_cast<int>(rank), tag, &peer.sending),
            "a send");
}

void MpiHeartbeat::beat() {
  double now = monotonicSeconds(), since = std::min(now - lastBeat, 2 * secondsBetween);
  lastBeat = now;
  bool due = now - lastTold >= secondsBetween;
  const Message message = describe();
  for (uint32_t rank = 0; rank < peers.size(); ++rank) {
    Peer &peer = peers[rank];
    if (rank == mpi.rank())
      continue;
    peer.still += since;
    while (!peer.left && mpi.isDone(&peer.receiving, 1)) {
      take(rank);
      if (!peer.left)
        listen(rank);
    }
    bool urgent = (message.failed && !peer.toldFailure) || (message.last && !peer.toldLast);
    if (mpi.isDone(&peer.sending, 1) && (due || urgent) && !peer.toldLast)
      tell(rank, message);
  }
  if (due)
    lastTold = now;
}

std::optional<uint32_t> MpiHeartbeat::silent(double seconds) const {
  for (uint32_t rank = 0; rank < peers.size(); ++rank)
    if (rank != mpi.rank() && !peers[rank].left && heard(rank) && peers[rank].still > seconds)
      return rank;
  return std::nullopt;
}

bool MpiHeartbeat::haveAllLeft() const {
  for (uint32_t rank = 0; rank < peers.size(); ++rank)
    if (rank != mpi.rank() &&
        (!peers[rank].left || !peers[rank].toldLast || peers[rank].sending != mpi.noRequest()))
      return false;
  return true;
}

bool MpiHeartbeat::isFailureTold() const {
  return std::all_of(peers.begin(), peers.end(), [&](const Peer &peer) {
    return &peer == &peers[mpi.rank()] || peer.left || peer.still > silentSeconds ||
           (peer.toldFailure && peer.sending == mpi.noRequest());
  });
}
