//===- PeerMemory.h - Collectives by reading peers' memory ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements collectives between ranks that can read each other's arenas. Such ranks are threads of
// one process, or processes on one machine. For each collective, each rank has a slot. In this slot
// the rank publishes the addresses of its buffers and its progress. A rank copies data directly
// from the sources of the other ranks.
//
//     all_gather, reduce_scatter, broadcast     all_reduce in place
//     arrived  -- all there? -- pull            arrived -- all there? -- reduce own segment
//     done     -- all done?  -- return          reduced -- all there? -- pull the others
//                                               done    -- all done?  -- return
//
// start() publishes that the rank has arrived, and wait() executes all other stages. The progress
// counter in a slot never decreases. If the ranks are in several processes, the slots contain
// offsets in the arenas instead of addresses, because each process maps an arena at a different
// address.
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_LOCAL_PEERMEMORY_H
#define FSDPRT_COLLECTIVES_LOCAL_PEERMEMORY_H

#include "collectives/shm/SharedControlBlock.h"

namespace fsdprt {

class PeerMemory : public Communicator {
protected:
  using Communicator::Communicator;

  static constexpr uint64_t stages = 3;

  /// State of a rank. The backend sets it before the first collective starts.
  struct Peer {
    CollectiveSlot *slots = nullptr; ///< one slot per collective
    /// event on which the members of a group wait if this rank is the first member of the group
    SharedFutexEvent *event = nullptr;
    /// address at which this process has mapped the arena of the rank
    uint64_t base = 0;
  };
  std::vector<Peer> peers;
  uint32_t spins = 0;
  /// For each own rank: a buffer for addresses. It contains the source address of each member of a
  /// group.
  std::vector<std::vector<const std::byte *>> pointers;

  void begin(uint32_t collective, uint32_t rank, const std::byte *source,
             std::byte *target) override;
  void finish(uint32_t collective, uint32_t rank, WorkerPool &pool) override;

private:
  CollectiveSlot &slotOf(uint32_t collective, uint32_t rank) const {
    return peers[rank].slots[collective];
  }
  const std::byte *sourceOf(uint32_t collective, uint32_t rank) const {
    return reinterpret_cast<const std::byte *>(peers[rank].base + slotOf(collective, rank).source);
  }
  std::byte *targetOf(uint32_t collective, uint32_t rank) const {
    return reinterpret_cast<std::byte *>(peers[rank].base + slotOf(collective, rank).target);
  }
  /// Publishes that a rank has reached `progress` in a collective.
  void reach(uint32_t collective, uint32_t rank, uint64_t progress);
  void await(uint32_t collective, uint32_t rank, uint64_t progress);
  void gather(uint32_t collective, uint32_t rank, WorkerPool &pool);
  void reduce(uint32_t collective, uint32_t rank, WorkerPool &pool, uint64_t first, uint64_t count,
              std::byte *target);
  void allReduceInPlace(uint32_t collective, uint32_t rank, WorkerPool &pool, uint64_t base);
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_LOCAL_PEERMEMORY_H
