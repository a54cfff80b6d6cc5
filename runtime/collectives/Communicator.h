//===- Communicator.h - How ranks meet --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The one interface between execution and a backend. The ranks of a mesh are spread over processes,
// each of which has some of them, [firstRank, firstRank + localRanks), as threads: all of them
// (local), or one (other backends).
//
//   set-up, by the thread that makes the ranks, the same calls in the same order in every process:
//       add(key) for each collective command; registerArena(rank, ...) for each own rank; connect()
//   collectives, by each own rank's thread, the same sequence on all members of a group:
//       start(c, rank, source, target) ... wait(c, rank, pool)     any number of others between the
//                                                                  two
//   between programs, by the thread that runs them, the same calls in the same order in every
//   process:
//       exchange(...), collect(...), barrier()
//
// (R1) `source` and `target` lie in the rank's registered arena, and stay as they are given from
//      start to wait; nobody reads the target or writes the source between the two.
// (R2) When wait returns the target is whole, and peers have read the source: both may be used
//      again.
// (R3) all_gather: the target is the members' sources, one after another, in the group's order. A
//      source may be the rank's own piece of the target. broadcast: the target is the source of
//      member `root`.
// (R4) reduce_scatter: of the sum of the sources, `count` elements for each member, the rank's own
//      piece; all_reduce: all of the sum, of `count` elements. An all_reduce may be in place
//      (source == target).
// (R5) A sum is ((+0 + x0) + x1) + ... in the group's order, in f64 for f64, else in f32, rounded
//      once at the end; avg multiplies by 1/n before that. So every backend computes the same bits
//      (Reduce.h does it).
// (R6) Counts may be 0, groups may have one member, and any number of collectives may be in flight.
//      A collective may be started again when its wait has returned.
// (R7) Neither start nor wait allocates memory. start does not wait for peers.
// (R8) Every wait ends: with its result; or with Error, status lost or hung, when a member dies or
//      makes no progress within the time limit, saying at which collective who was missing and
//      where that rank was last seen; or with Abandoned when another rank has failed or abort() was
//      called.
//
// (R9) A rank's starts are of one thread. Its waits may be of another one, where
// allowsTransferWorkers(). (R10) Where isOnDevice(), arenas have queues: start and wait are places
// on the rank's compute
//       stream, between two of its commands, and what
//      they say of memory holds there. The host waits for nothing but for other ranks' starts.
//
// runtime/test/collectives/ConformanceTest.cpp checks all of it on every backend.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_COMMUNICATOR_H
#define FSDPRT_COLLECTIVES_COMMUNICATOR_H

#include "artifact/Mesh.h"
#include "collectives/Watchdog.h"
#include "core/DType.h"
#include "device/cpu/WorkerPool.h"

namespace fsdprt {

class CudaQueue;
struct DeviceSpan;

/// A collective command: the same on all ranks.
struct CollectiveKey {
  fb::CollectiveKind kind;
  fb::Reduction reduction;
  DType dtype;
  uint64_t count; ///< elements: of a source, and of a target for all_reduce and broadcast; of a
                  ///< target for reduce_scatter
  uint32_t root;  ///< a member's place in its group
  std::vector<uint32_t> axes; ///< what a group is over: Mesh::group
  uint32_t id;                ///< in its program, for messages
  std::string label, unit;    ///< for messages
};

/// What a rank computes on. `descriptor` is that of the memory where it can be mapped by others, or
/// -1; `queue`, where it is on a GPU, what puts work that touches it in order.
struct ArenaMemory {
  std::byte *base = nullptr;
  uint64_t bytes = 0;
  int descriptor = -1;
  CudaQueue *queue = nullptr;
};

/// The ranks that are threads of this process.
struct LocalRanks {
  uint32_t first = 0, count = 0;
};

class Communicator {
public:
  virtual ~Communicator() = default;
  Communicator(const Communicator &) = delete;
  Communicator &operator=(const Communicator &) = delete;

  const Mesh &getMesh() const { return mesh; }
  uint32_t ranks() const { return static_cast<uint32_t>(mesh.ranks()); }
  uint32_t firstRank() const { return localRange.first; }
  uint32_t localRanks() const { return localRange.count; }
  bool isLocal(uint32_t rank) const { return rank - localRange.first < localRange.count; }
  /// The process of rank 0: it prints, and writes what there is one of.
  bool isRoot() const { return localRange.first == 0; }
  virtual uint32_t processes() const = 0;
  virtual const char *name() const = 0;
  /// The name, or what it is over.
  virtual const char *text() const { return name(); }
  Watchdog &getWatchdog() { return *watchdog; }
  const std::shared_ptr<Watchdog> &shareWatchdog() const { return watchdog; }

  //===- Set-up -----------------------------------------------------------===//

  /// Returns the collective's number: 0, 1, ...
  uint32_t add(CollectiveKey key);
  const CollectiveKey &getKey(uint32_t collective) const { return collectives[collective].key; }
  uint64_t numCollectives() const { return collectives.size(); }
  /// A planted fault: what `rank` contributes to sums is left out.
  void dropContribution(uint32_t collective, uint32_t rank) {
    collectives[collective].dropped = rank;
  }
  /// Arenas have to be of memory that others can map.
  virtual bool needsSharedArenas() const { return false; }
  virtual void registerArena(uint32_t rank, const ArenaMemory &memory) = 0;
  /// There are no more collectives, and arenas may go. May be called more than once.
  virtual void releaseArenas() {}
  /// Meets all other processes, and compares the collectives with theirs. Throws Error, which names
  /// who is missing.
  virtual void connect() = 0;

  //===- Collectives ------------------------------------------------------===//

  void start(uint32_t collective, uint32_t rank, const std::byte *source, std::byte *target);
  /// The next collective that `rank` starts is one launch with that after it, which it starts
  /// before it waits for anything.
  virtual void joinNext(uint32_t /*rank*/) {}
  /// `pool` are the rank's threads: they may be used to move bytes. Throws Error or Abandoned, see
  /// (R8).
  void wait(uint32_t collective, uint32_t rank, WorkerPool &pool);
  /// See (R9).
  virtual bool allowsTransferWorkers() const { return true; }
  /// See (R10).
  virtual bool isOnDevice() const { return false; }
  /// Of a collective that a rank has waited for, where its queue has a timeline: when it was on the
  /// rank's streams.
  virtual DeviceSpan spanOnDevice(uint32_t collective, uint32_t rank) const;
  /// The number of the GPU of the first rank here; the others go round from there.
  virtual uint32_t firstDevice() const { return 0; }
  /// Of the first rank here, by kind: the larger of source and target of what it completed.
  const uint64_t *exchangedBytes() const { return exchanged; }
  /// Counts what was done without start and wait: these, `times` times.
  void countExchanged(const uint64_t (&bytes)[4], int64_t times);
  /// What a ring of links would carry of it, from each rank: its bytes times (n - 1) / n, twice
  /// that for an all_reduce.
  uint64_t wireBytes(uint32_t collective) const;

  //===- Between programs: one thread per process; as they are, where there is one process ---===//

  /// Gives every process's `mine` to every process: `all` has room for processes() of them, in the
  /// order of their ranks. At most exchangeLimit bytes each. Allocates nothing.
  virtual void exchange(const void *mine, size_t bytes, void *all);
  static constexpr size_t exchangeLimit = 8192;
  void barrier() { exchange(nullptr, 0, nullptr); }
  /// Brings `bytes` at `data`, in the process of `rank`, to `into` in the process of rank 0. All
  /// processes call it; `data` is looked at in the one, `into` in the other.
  virtual void collect(uint32_t rank, const void *data, size_t bytes, void *into);
  /// The run is over as planned: from here on it is no failure when a process ends.
  virtual void leave() { barrier(); }

  //===- Failure ----------------------------------------------------------===//

  /// Ends all waits, of this process at least, with Abandoned. May be called from any thread, more
  /// than once. `status` is what this process will end with.
  virtual void abort(fsdprt_status status) { watchdog->fail(status); }
  /// What a rank throws when another has failed. Where no launcher collects the statuses of the
  /// ranks it has that of the one that failed: the first process that ends gives a launcher of MPI
  /// its exit code.
  virtual Abandoned abandoned() const { return Abandoned(); }
  /// Looks for an error that no wait has met yet: of a library that reports later, of a peer.
  /// Throws Error or Abandoned.
  virtual void poll() {
    if (watchdog->hasFailed())
      throw abandoned();
  }
  /// "collective 42 (all_gather 'h.0 gather', unit 'h.0')".
  std::string describe(uint32_t collective) const;
  /// Of a rank, for messages: its place in the program, and the last collective that it began.
  std::string describeProgress(uint32_t rank) const;

protected:
  Communicator(Mesh mesh, LocalRanks localRange, std::shared_ptr<Watchdog> watchdog)
      : mesh(std::move(mesh)), localRange(localRange), watchdog(std::move(watchdog)) {}

  virtual void begin(uint32_t collective, uint32_t rank, const std::byte *source,
                     std::byte *target) = 0;
  virtual void finish(uint32_t collective, uint32_t rank, WorkerPool &pool) = 0;

  /// The groups over some axes, of every rank.
  struct Groups {
    std::vector<uint32_t> axes;
    std::vector<std::vector<uint32_t>> members; ///< of the rank's group, in order
    std::vector<uint32_t> index;                ///< of the rank in that
  };
  struct Collective {
    CollectiveKey key;
    const Groups *groups;
    uint32_t dropped = UINT32_MAX;
  };
  const std::vector<uint32_t> &membersOf(uint32_t collective, uint32_t rank) const {
    return collectives[collective].groups->members[rank];
  }
  /// For a wait whose progress timeout is over.
  [[noreturn]] void reportMissing(uint32_t collective, uint32_t rank,
                                  const std::vector<uint32_t> &missing) const;

  Mesh mesh;
  LocalRanks localRange;
  std::shared_ptr<Watchdog> watchdog; // perhaps that of another communicator, too
  std::vector<Collective> collectives;

private:
  const Groups *groupsOver(const std::vector<uint32_t> &axes);

  std::vector<std::unique_ptr<Groups>> groups;
  uint64_t exchanged[4] = {};
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_COMMUNICATOR_H
