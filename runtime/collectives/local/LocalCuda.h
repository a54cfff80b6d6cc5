//===- LocalCuda.h - Ranks of one process on GPUs ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All ranks are threads of one process. Their arenas are in the memory of one GPU, or of several
// GPUs that have access to each other's memory. Collectives do not copy through the host, and no
// thread waits for a GPU. When a member of a collective calls start(), the member records a mark on
// its compute stream. The last member that calls start() then enqueues the transfers of all members
// on their gather or reduce streams. These streams first wait for the marks of all members:
//
//     compute stream   | before | mark ------ wait: after the transfers of all members | after
//     gather stream                  \-> after the marks of all members: copies | mark
//
// wait() enqueues a wait on the compute stream of the rank and returns. Commands that the rank
// enqueues after wait() therefore run only when the target is complete and the sources are no
// longer read (R2). Sums are computed by CudaSums. In an all-reduce, each rank sums its own
// segment, records a mark, and then copies the segments of the other members.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_LOCAL_LOCALCUDA_H
#define FSDPRT_COLLECTIVES_LOCAL_LOCALCUDA_H

#include "collectives/Communicator.h"
#include "device/cuda/CudaTimeline.h"
#include <mutex>

namespace fsdprt {

class LocalCuda : public Communicator {
public:
  LocalCuda(Mesh mesh, double timeoutSeconds, uint32_t spins);
  /// Creates a communicator that reports progress to `watchdog`, a result of Watchdog::alone().
  LocalCuda(Mesh mesh, std::unique_ptr<Watchdog> watchdog, uint32_t spins);
  ~LocalCuda() override;

  const char *name() const override { return "local"; }
  const char *text() const override { return "memory of GPUs"; }
  uint32_t processes() const override { return 1; }
  void registerArena(uint32_t rank, const ArenaMemory &memory) override {
    queues[rank] = memory.queue;
  }
  void releaseArenas() override { slots.clear(); }
  void connect() override;
  bool allowsTransferWorkers() const override { return false; }
  bool isOnDevice() const override { return true; }
  DeviceSpan spanOnDevice(uint32_t collective, uint32_t rank) const override {
    return slotOf(collective, rank).span;
  }

protected:
  void begin(uint32_t collective, uint32_t rank, const std::byte *source,
             std::byte *target) override;
  void finish(uint32_t collective, uint32_t rank, WorkerPool &pool) override;
  const CudaQueue &queueOf(uint32_t rank) const { return *queues[rank]; }

private:
  struct CollectiveSlot {
    explicit CollectiveSlot(const CudaQueue &queue) : begun(queue), summed(queue), done(queue) {}
    CudaPointer source = 0, target = 0;
    std::atomic<uint64_t> begins{0}; ///< number of calls of start()
    CudaMark begun, summed, done;
    DeviceSpan span; ///< time stamps of the transfers of the rank
  };
  /// State of a collective in a group. It is stored at the index of the group's first member.
  struct Table {
    std::mutex mutex;
    uint32_t arrived = 0;
    std::atomic<uint64_t> issued{0}; ///< number of times that the collective was enqueued
    FutexEvent event;
  };
  CollectiveSlot &slotOf(uint32_t collective, uint32_t rank) const {
    return *slots[rank * numCollectives() + collective];
  }
  Table &tableOf(uint32_t collective, uint32_t rank) const {
    return tables[membersOf(collective, rank)[0] * numCollectives() + collective];
  }
  CudaQueue::Lane laneOf(uint32_t collective) const;
  void checkGroups() const;
  void reachPeers() const;
  void issue(uint32_t collective, uint32_t anyMember);
  void gather(uint32_t collective, uint32_t rank);
  void sum(uint32_t collective, uint32_t rank, uint64_t first, uint64_t count, CudaPointer target);
  void collectPieces(uint32_t collective, uint32_t rank);
  void copy(const CudaQueue &queue, CudaQueue::Lane lane, CudaPointer to, CudaPointer from,
            uint64_t bytes) const;
  std::vector<uint32_t> missingAt(uint32_t collective, uint32_t rank) const;

  uint32_t spins;
  std::vector<CudaQueue *> queues; ///< queues by rank
  std::vector<std::unique_ptr<CollectiveSlot>> slots;
  std::unique_ptr<Table[]> tables;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_LOCAL_LOCALCUDA_H
