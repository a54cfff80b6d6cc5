//===- LocalBackend.cpp - Threads, for the conformance tests ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One communicator, and a thread for each rank.
//
//===----------------------------------------------------------------------===//

#include "Conformance.h"
#include "collectives/Local.h"
#include <thread>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
class LocalBackend : public Backend {
public:
  const char *name() const override { return "local"; }
  void meet(const Meeting &meeting, const std::function<void(Attendee &)> &body) override {
    LocalCommunicator communicator(meeting.mesh, meeting.timeoutSeconds, /*spins=*/100);
    for (const CollectiveKey &key : meeting.keys)
      communicator.add(key);
    if (meeting.prepare)
      meeting.prepare(communicator);
    std::vector<std::unique_ptr<Arena>> arenas;
    for (uint32_t rank = 0; rank < meeting.mesh.ranks(); ++rank) {
      arenas.push_back(std::make_unique<Arena>(meeting.arenaBytes));
      communicator.registerArena(rank, {arenas[rank]->at(0), arenas[rank]->mappedBytes()});
    }
    communicator.connect();
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < meeting.mesh.ranks(); ++rank)
      threads.emplace_back([&, rank] {
        WorkerPool pool(meeting.workers, 0);
        Attendee attendee{communicator, rank, *arenas[rank], pool};
        body(attendee);
      });
    for (std::thread &thread : threads)
      thread.join();
  }
};
} // namespace

static RegisterBackend registered(std::make_unique<LocalBackend>());
