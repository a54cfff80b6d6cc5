//===- PeerMemory.h - Collectives by reading peers' memory ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements collectives between ranks that can read each other's arenas: threads of a process, and
// processes of a machine. Each rank has a slot for each collective, in which it publishes its
// buffers and its progress. A rank copies directly from the sources of other ranks.
//
//     all_gather, reduce_scatter, broadcast     all_reduce in place
//     arrived  -- all there? -- pull            arrived -- all there? -- reduce own segment
//     done     -- all done?  -- return          reduced -- all there? -- pull the others
//                                               done    -- all done?  -- return
//
// start() publishes the arrival, and wait() executes the other stages. A slot's progress counter
// never decreases. Slots contain offsets in the arena, because processes map an arena at different
// addresses.
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_LOCAL_PEERMEMORY_H
#define FSDPRT_COLLECTIVES_LOCAL_PEERMEMORY_H

#include "collectives/shm/SharedControlBlock.h"

namespace fsdprt {

class PeerMemory : public Communicator {
protected:
  using Communicator::Communicator;

  static constexpr uint64_t stages = 3;

  /// State of a rank. A backend sets it before the first collective.
  struct Peer {
    CollectiveSlot *slots = nullptr;   ///< one slot per collective
    SharedFutexEvent *event = nullptr; ///< event of the groups whose first member is this rank
    uint64_t base = 0;                 ///< address of the rank's arena in this process
  };
  std::vector<Peer> peers;
  uint32_t spins = 0;
  /// For each own rank, a buffer for the addresses of the sources of all members of a group.
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
