//===- RankThreads.h - Rank threads of the conformance suite ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Functions for backends whose ranks are threads. Either all threads share one communicator, or
// each thread has its own communicator.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_COLLECTIVES_RANKTHREADS_H
#define FSDPRT_TEST_COLLECTIVES_RANKTHREADS_H

#include "collectives/shm/ShmHost.h"
#include "device/cpu/WorkerPool.h"
#include "test/collectives/Conformance.h"
#include <atomic>
#include <thread>
#include <vector>

namespace fsdprt::test {

inline void addCollectives(Communicator &communicator, const Meeting &meeting) {
  for (const CollectiveKey &key : meeting.keys)
    communicator.add(key);
  if (meeting.prepare)
    meeting.prepare(communicator);
}

inline void attendAlone(Communicator &communicator, const Meeting &meeting, uint32_t rank,
                        bool sumsInOrder, const std::function<void(Attendee &)> &body) {
  addCollectives(communicator, meeting);
  Arena arena(meeting.arenaBytes,
              communicator.needsSharedArenas() ? Arena::Kind::shared : Arena::Kind::own);
  communicator.registerArena(rank, {arena.at(0), arena.mappedBytes(), arena.descriptor()});
  communicator.connect();
  WorkerPool pool(meeting.workers, 0);
  Attendee attendee{communicator, rank, arena, pool, sumsInOrder};
  body(attendee);
  communicator.releaseArenas();
}

/// Runs `body` on one thread per rank with a shared communicator. `makeArena` creates and registers
/// the arena of a rank.
inline void attendTogether(Communicator &communicator, const Meeting &meeting, bool sumsInOrder,
                           const std::function<void(Attendee &)> &body,
                           const std::function<std::unique_ptr<Arena>(uint32_t)> &makeArena) {
  addCollectives(communicator, meeting);
  std::vector<std::unique_ptr<Arena>> arenas;
  for (uint32_t rank = 0; rank < meeting.mesh.ranks(); ++rank)
    arenas.push_back(makeArena(rank));
  communicator.connect();
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < meeting.mesh.ranks(); ++rank)
    threads.emplace_back([&, rank] {
      WorkerPool pool(meeting.workers, 0);
      Attendee attendee{communicator, rank, *arenas[rank], pool, sumsInOrder};
      body(attendee);
    });
  for (std::thread &thread : threads)
    thread.join();
  communicator.releaseArenas();
}

inline void attendTogether(Communicator &communicator, const Meeting &meeting, bool sumsInOrder,
                           const std::function<void(Attendee &)> &body) {
  attendTogether(communicator, meeting, sumsInOrder, body, [&](uint32_t rank) {
    auto arena = std::make_unique<Arena>(meeting.arenaBytes);
    communicator.registerArena(rank, {arena->at(0), arena->mappedBytes()});
    return arena;
  });
}

/// Runs attend(rank, channel) on one thread per rank. Meanwhile, another thread runs a ShmHost at
/// the other ends of the channels.
inline void meetAtHost(const Meeting &meeting, const std::function<void(uint32_t, int)> &attend) {
  uint32_t ranks = static_cast<uint32_t>(meeting.mesh.ranks());
  ShmHost host(ranks, static_cast<uint32_t>(meeting.keys.size()));
  std::atomic<bool> over{false};
  std::thread serving([&] {
    while (!over)
      host.serve(0.05);
  });
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { attend(rank, host.takeEndOf(rank)); });
  for (std::thread &thread : threads)
    thread.join();
  over = true;
  serving.join();
}

} // namespace fsdprt::test

#endif // FSDPRT_TEST_COLLECTIVES_RANKTHREADS_H
