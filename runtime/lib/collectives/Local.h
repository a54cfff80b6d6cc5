//===- Local.h - Collectives between threads of one process -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A site is one collective command of a program; each rank has a seat at it, where
// it leaves its pointers and how far it is. Peers read a rank's source in place.
//
//     all_gather, reduce_scatter, broadcast     all_reduce in place
//     arrived  -- all there? -- pull            arrived -- all there? -- reduce own part
//     done     -- all done?  -- return          reduced -- all there? -- pull the other parts
//                                               done    -- all done?  -- return
//
// start() is the arrival alone; complete() the rest. A site may be used again and
// again: counters only grow. Nothing is allocated by either.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_LOCAL_H
#define FSDPRT_COLLECTIVES_LOCAL_H

#include "collectives/Mesh.h"
#include "collectives/Watch.h"
#include "core/DType.h"
#include "device/WorkerPool.h"

namespace fsdprt {

struct CollectiveKey {
  fb::CollectiveKind kind;
  fb::Reduction reduction;
  DType dtype;
  uint64_t count;
  uint32_t root;
  std::vector<uint32_t> axes;
  uint32_t id;
  std::string label;
};

class LocalSite {
public:
  LocalSite(const Mesh &mesh, CollectiveKey key);

  const CollectiveKey &getKey() const { return key; }
  uint32_t groupSize(uint32_t rank) const { return static_cast<uint32_t>(seats[rank].members.size()); }
  /// A planted fault: what this rank contributes to sums is left out.
  void dropRank(uint32_t rank) { dropped = rank; }

private:
  friend class LocalCollectives;
  struct alignas(64) Seat {
    std::atomic<uint64_t> progress{0}; // grows by `stages` per use
    const std::byte *source = nullptr;
    std::byte *target = nullptr;
    std::vector<uint32_t> members;          // of the group, in order
    uint32_t index = 0;                     // own place in it
    std::vector<const std::byte *> sources; // room for the members' pointers
    std::unique_ptr<Bell> bell;             // the group's, at its first member
  };
  static constexpr uint64_t stages = 3;
  CollectiveKey key;
  std::vector<Seat> seats;
  uint32_t dropped = UINT32_MAX;
};

class LocalCollectives {
public:
  LocalCollectives(Watch &watch, uint32_t spins) : watch(watch), spins(spins) {}

  void start(LocalSite &site, uint32_t rank, const std::byte *source, std::byte *target);
  /// Throws Error when a peer does not come, Abandoned when one has failed.
  void complete(LocalSite &site, uint32_t rank, WorkerPool &pool);
  /// Of rank 0, by kind: the larger of source and target of what it completed.
  const uint64_t *exchangedBytes() const { return exchanged; }

private:
  using Seat = LocalSite::Seat;
  void reach(LocalSite &site, uint32_t rank, uint64_t progress);
  void await(LocalSite &site, uint32_t rank, uint64_t progress);
  [[noreturn]] void reportMissing(const LocalSite &site, uint32_t rank, uint64_t progress) const;
  void gather(LocalSite &site, Seat &seat, WorkerPool &pool);
  void reduce(LocalSite &site, Seat &seat, WorkerPool &pool, uint64_t first, uint64_t count, std::byte *target);
  void allReduceInPlace(LocalSite &site, uint32_t rank, WorkerPool &pool, uint64_t base);

  Watch &watch;
  uint32_t spins;
  uint64_t exchanged[4] = {};
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_LOCAL_H
