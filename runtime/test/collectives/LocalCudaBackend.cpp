//===- LocalCudaBackend.cpp - Ranks on GPUs, for the conformance tests -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Registers a backend for GPUs. It runs on the emulated CUDA driver. The host reads the arenas in
// the tests. The arenas are therefore in memory that the host can access, and each wait for a
// collective also waits until all streams of the rank are idle.
//
//===----------------------------------------------------------------------===//

#include "collectives/local/LocalCuda.h"
#include "test/collectives/RankThreads.h"
#include "test/device/EmulatedCuda.h"

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
class Waiting final : public LocalCuda {
public:
  using LocalCuda::LocalCuda;

protected:
  void finish(uint32_t collective, uint32_t rank, WorkerPool &pool) override {
    LocalCuda::finish(collective, rank, pool);
    queueOf(rank).finish([this] { poll(); });
  }
};

class PinnedArenas final : public ArenaSource {
public:
  explicit PinnedArenas(const EmulatedGpuContext &gpu) : gpu(gpu) {}
  std::byte *allocate(uint64_t bytes, Place) override {
    gpu.cuda->contextSetCurrent(gpu.context);
    auto *memory = static_cast<std::byte *>(gpu.pin(bytes));
    std::memset(memory, 0, bytes);
    return memory;
  }
  void release(std::byte *memory, Place) override {
    gpu.cuda->contextSetCurrent(gpu.context);
    gpu.cuda->memFreeHost(memory);
  }

private:
  const EmulatedGpuContext &gpu;
};

class LocalCudaBackend : public Backend {
public:
  const char *name() const override { return "local_cuda"; }
  void meet(const Meeting &meeting, const std::function<void(Attendee &)> &body) override {
    EmulatedGpuContext gpu;
    PinnedArenas memory(gpu);
    std::vector<std::unique_ptr<CudaQueue>> queues;
    for (uint32_t rank = 0; rank < meeting.mesh.ranks(); ++rank)
      queues.push_back(std::make_unique<CudaQueue>(*gpu.cuda, 0, gpu.context, gpu.sums.get()));
    Waiting communicator(meeting.mesh, meeting.timeoutSeconds, /*spins=*/100);
    auto makeArena = [&](uint32_t rank) {
      auto arena = std::make_unique<Arena>(ArenaParts{meeting.arenaBytes, 0, 0}, memory);
      communicator.registerArena(rank,
                                 {arena->at(0), arena->mappedBytes(), -1, queues[rank].get()});
      return arena;
    };
    attendTogether(communicator, meeting, /*sumsInOrder=*/true, body, makeArena);
  }
};
} // namespace

static RegisterBackend registered(std::make_unique<LocalCudaBackend>());
