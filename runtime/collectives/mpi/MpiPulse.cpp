//===- MpiPulse.cpp - Signs of life over MPI ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One message to each peer at a time: to one that is stopped or cut off nothing piles up.
//
//===----------------------------------------------------------------------===//

#include "collectives/mpi/MpiPulse.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;

static constexpr double secondsBetween = 0.1;

MpiPulse::MpiPulse(MpiLibrary &mpi, Watch &watch, fsdprt_mpi_handle over, int tag)
    : mpi(mpi), watch(watch), over(over), tag(tag), peers(mpi.size()) {
  for (uint32_t rank = 0; rank < mpi.size(); ++rank) {
    peers[rank].sending = peers[rank].receiving = mpi.noRequest();
    if (rank != mpi.rank())
      listen(rank);
  }
}

/// A message that is still being sent to a peer that is gone keeps its memory.
MpiPulse::~MpiPulse() {
  bool pending = false;
  for (Peer &peer : peers) {
    mpi->cancel(&peer.receiving);
    pending |= peer.sending != mpi.noRequest();
  }
  if (pending)
    new std::vector<Peer>(std::move(peers));
}

void MpiPulse::listen(uint32_t rank) {
  Peer &peer = peers[rank];
  mpi.check(
      mpi->receive(over, &peer.in, sizeof peer.in, static_cast<int>(rank), tag, &peer.receiving),
      "a receive");
}

MpiPulse::Message MpiPulse::describe() const {
  Message message = {};
  const Life &life = watch.lifeOf(mpi.rank());
  message.beats = life.beats.load(std::memory_order_relaxed);
  message.number = life.number.load(std::memory_order_relaxed);
  message.command = life.command.load(std::memory_order_relaxed);
  message.collective = life.collective.load(std::memory_order_relaxed);
  message.failed = watch.failure();
  message.last = leaving;
  std::strncpy(message.program, watch.wordAt(life.program.load(std::memory_order_relaxed)),
               sizeof message.program - 1);
  std::strncpy(message.label, watch.wordAt(life.label.load(std::memory_order_relaxed)),
               sizeof message.label - 1);
  return message;
}

void MpiPulse::take(uint32_t rank) {
  Peer &peer = peers[rank];
  const Message &message = peer.in;
  Life &life = watch.lifeOf(rank);
  peer.turn ^= 1;
  std::memcpy(peer.program[peer.turn], message.program, sizeof message.program - 1);
  std::memcpy(peer.label[peer.turn], message.label, sizeof message.label - 1);
  life.program.store(watch.placeOf(peer.program[peer.turn]), std::memory_order_relaxed);
  life.label.store(watch.placeOf(peer.label[peer.turn]), std::memory_order_relaxed);
  life.number.store(message.number, std::memory_order_relaxed);
  life.command.store(message.command, std::memory_order_relaxed);
  life.collective.store(message.collective, std::memory_order_relaxed);
  life.beats.store(message.beats, std::memory_order_relaxed);
  peer.heard.fetch_add(1, std::memory_order_relaxed);
  peer.left = message.last != 0;
  if (message.failed && !message.last)
    watch.fail(std::min<uint32_t>(message.failed, FSDPRT_ABANDONED));
}

void MpiPulse::tell(uint32_t rank, const Message &message) {
  Peer &peer = peers[rank];
  peer.out = message;
  peer.toldLast = message.last != 0;
  peer.toldFailure = message.failed != 0;
  mpi.check(mpi->send(over, &peer.out, sizeof peer.out, static_cast<int>(rank), tag, &peer.sending),
            "a send");
}

void MpiPulse::beat() {
  double now = monotonicSeconds();
  bool due = now - lastTold >= secondsBetween;
  const Message message = describe();
  for (uint32_t rank = 0; rank < peers.size(); ++rank) {
    Peer &peer = peers[rank];
    if (rank == mpi.rank())
      continue;
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

bool MpiPulse::haveAllLeft() const {
  for (uint32_t rank = 0; rank < peers.size(); ++rank)
    if (rank != mpi.rank() &&
        (!peers[rank].left || !peers[rank].toldLast || peers[rank].sending != mpi.noRequest()))
      return false;
  return true;
}

bool MpiPulse::isFailureTold() const {
  return std::all_of(peers.begin(), peers.end(), [&](const Peer &peer) {
    return &peer == &peers[mpi.rank()] || peer.left ||
           (peer.toldFailure && peer.sending == mpi.noRequest());
  });
}
