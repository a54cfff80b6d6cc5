//===- NcclBackend.cpp - NCCL, for the conformance tests --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Twice: with one communicator for all ranks, and with one for each, over the control of processes of a machine. They
// meet over the stand-in (NcclStub.h).
//
//===----------------------------------------------------------------------===//

#include "Conformance.h"
#include "collectives/Local.h"
#include "collectives/Nccl.h"
#include "collectives/Shm.h"
#include "collectives/ShmHost.h"
#include <cstdlib>
#include <thread>

using namespace fsdprt;
using namespace fsdprt::test;

#ifdef FSDPRT_NCCL_STUB_LIBRARY
static constexpr bool isStub = true;
[[maybe_unused]] static const int paths = setenv("FSDPRT_NCCL_LIBRARY", FSDPRT_NCCL_STUB_LIBRARY, 1) |
                                          setenv("FSDPRT_CUDA_LIBRARY", FSDPRT_NCCL_STUB_LIBRARY, 1);
#else
static constexpr bool isStub = false;
#endif

namespace {
class NcclBackend : public Backend {
public:
  bool canMeet(uint32_t ranks) const override {
    const char *shared = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    return isStub || ranks <= static_cast<uint32_t>(CudaDriver().devices()) || (shared && *shared == '1');
  }

protected:
  static void setUp(NcclCommunicator &communicator, const Meeting &meeting) {
    for (const CollectiveKey &key : meeting.keys)
      communicator.add(key);
    if (meeting.prepare)
      meeting.prepare(communicator);
  }
};

class NcclThreads final : public NcclBackend {
public:
  const char *name() const override { return "nccl"; }
  void meet(const Meeting &meeting, const std::function<void(Attendee &)> &body) override {
    NcclCommunicator communicator(
        std::make_unique<LocalCommunicator>(meeting.mesh, meeting.timeoutSeconds, /*spins=*/100), /*spins=*/100);
    setUp(communicator, meeting);
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
        Attendee attendee{communicator, rank, *arenas[rank], pool, isStub};
        body(attendee);
      });
    for (std::thread &thread : threads)
      thread.join();
    communicator.releaseArenas();
  }
};

/// As processes do it, in threads.
class NcclProcesses final : public NcclBackend {
public:
  const char *name() const override { return "nccl_over_shm"; }
  void meet(const Meeting &meeting, const std::function<void(Attendee &)> &body) override {
    uint32_t ranks = static_cast<uint32_t>(meeting.mesh.ranks());
    ShmHost board(ranks, static_cast<uint32_t>(meeting.keys.size()));
    std::atomic<bool> over{false};
    std::thread serving([&] {
      while (!over)
        board.serve(0.05);
    });
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] { attend(meeting, rank, board.takeEndOf(rank), body); });
    for (std::thread &thread : threads)
      thread.join();
    over = true;
    serving.join();
  }

private:
  static void attend(const Meeting &meeting, uint32_t rank, int channel, const std::function<void(Attendee &)> &body) {
    NcclCommunicator communicator(
        std::make_unique<ShmCommunicator>(meeting.mesh, rank, channel, /*agreement=*/"", meeting.timeoutSeconds, /*spins=*/100),
        /*spins=*/100);
    setUp(communicator, meeting);
    Arena arena(meeting.arenaBytes, Arena::Kind::shared);
    communicator.registerArena(rank, {arena.at(0), arena.mappedBytes(), arena.descriptor()});
    communicator.connect();
    WorkerPool pool(meeting.workers, 0);
    Attendee attendee{communicator, rank, arena, pool, isStub};
    body(attendee);
    communicator.releaseArenas();
  }
};
} // namespace

static RegisterBackend threads(std::make_unique<NcclThreads>());
static RegisterBackend processes(std::make_unique<NcclProcesses>());
