//===- Local.cpp - Ranks as threads of one process --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements Local.h. The slots and the events of the ranks are allocated on the heap.
//
//===----------------------------------------------------------------------===//

#include "collectives/local/Local.h"

using namespace fsdprt;

LocalCommunicator::LocalCommunicator(Mesh mesh, std::unique_ptr<Watchdog> watchdog,
                                     uint32_t newSpins)
    : PeerMemory(std::move(mesh), LocalRanks{}, std::move(watchdog)) {
  localRange.count = ranks();
  spins = newSpins;
}

static std::unique_ptr<Watchdog> watchOver(const Mesh &mesh, double timeoutSeconds) {
  return std::make_unique<Watchdog>(static_cast<uint32_t>(mesh.ranks()), timeoutSeconds);
}

LocalCommunicator::LocalCommunicator(Mesh mesh, double timeoutSeconds, uint32_t spins)
    : LocalCommunicator(mesh, watchOver(mesh, timeoutSeconds), spins) {}

void LocalCommunicator::connect() {
  peers.resize(ranks());
  pointers.assign(ranks(), std::vector<const std::byte *>(ranks()));
  for (Peer &peer : peers) {
    rankSlots.push_back(std::make_unique<RankSlot>());
    rankSlots.back()->slots = std::make_unique<CollectiveSlot[]>(numCollectives());
    peer = {rankSlots.back()->slots.get(), &rankSlots.back()->event, 0};
  }
}
