//===- Communicator.h - Collectives between ranks ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the interface of a backend. The ranks of a mesh are divided among processes. A process
// runs the ranks [firstRank, firstRank + localRanks) as threads: either all ranks of the mesh, or
// one rank. These ranks are called the process's own ranks, or the ranks here.
//
//   Set-up, by the thread that creates the ranks; every process makes equal calls in equal order:
//       add(key) for each collective command; registerArena(rank, ...) for each own rank; connect()
//   Collectives, by the thread of each own rank; all members of a group make equal calls:
//       start(c, rank, source, target) ... wait(c, rank, pool)     others may run in between
//   Between programs, by the thread that runs them; every process makes equal calls in equal order:
//       exchange(...), collect(...), barrier()
//
// Every backend obeys these rules:
//
// (R1) `source` and `target` lie in the rank's registered arena. From start to wait, the rank does
//      not read the target or write the source.
// (R2) When wait returns, the target is complete and the other members have read the source. The
//      rank may then read the target and write the source.
// (R3) The target of an all_gather is the concatenation of the members' sources, in the order of
//      the group. A source may be the rank's own segment of the target. The target of a broadcast
//      is the source of member `root`.
// (R4) The target of a reduce_scatter is the rank's own segment, of `count` elements, of the sum of
//      the sources. The target of an all_reduce is the whole sum, of `count` elements. An
//      all_reduce may be in place (source == target).
// (R5) A sum is ((+0 + x0) + x1) + ... in the order of the group. A sum of f64 elements is computed
//      in f64, and any other sum in f32. The result is rounded once at the end. An average
//      multiplies by 1/n before rounding. All backends thus compute equal bits, which are those of
//      Reduce.h.
// (R6) Counts may be 0, groups may have one member, and any number of collectives may be in flight.
//      A collective may be started again after its wait has returned.
// (R7) Neither start nor wait allocates memory. start does not wait for other ranks.
// (R8) Every wait ends. It returns; or it throws Error, if a member dies (status lost) or makes no
//      progress within the time limit (status hung); or it throws Abandoned, if another rank has
//      failed or abort() was called. The message of Error names the collective, the missing ranks
//      and their last known commands.
// (R9) One thread makes all start calls of a rank. If allowsTransferWorkers() is true, any thread
//      may call wait.
// (R10) If isOnDevice() is true, arenas have queues. start and wait then enqueue marks on the
//      rank's compute stream. Rules R1 and R2 hold for the commands before and after these marks on
//      the stream. The host waits only until the other ranks have called start.
//
// runtime/test/collectives/ConformanceTest.cpp checks these rules on every backend.
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

/// A collective command, which is equal on all ranks.
struct CollectiveKey {
  fb::CollectiveKind kind;
  fb::Reduction reduction;
  DType dtype;
  uint64_t count;             ///< elements of the source, but for reduce_scatter of the target
  uint32_t root;              ///< for broadcast, index of the sending member in its group
  std::vector<uint32_t> axes; ///< mesh axes over which the groups extend (Mesh::group)
  uint32_t id;                ///< index of the command in the program, for messages
  std::string label, unit;    ///< label and unit of the command, for messages
};

/// A rank's arena. `descriptor` is the file descriptor of memory that other processes can map, or
/// -1. If the arena is on a GPU, `queue` has the streams that access the arena.
struct ArenaMemory {
  std::byte *base = nullptr;
  uint64_t bytes = 0;
  int descriptor = -1;
  CudaQueue *queue = nullptr;
};

/// Range of ranks that are threads of this process.
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
  /// Returns true in the process of rank 0, which prints and writes the files of the whole run.
  bool isRoot() const { return localRange.first == 0; }
  virtual uint32_t processes() const = 0;
  virtual const char *name() const = 0;
  /// Returns a text with the transport, or with the library and its version.
  virtual const char *text() const { return name(); }
  Watchdog &getWatchdog() { return *watchdog; }
  const std::shared_ptr<Watchdog> &shareWatchdog() const { return watchdog; }

  //===- Set-up -----------------------------------------------------------===//

  /// Adds a collective and returns the collective's index. The first index is 0.
  uint32_t add(CollectiveKey key);
  const CollectiveKey &getKey(uint32_t collective) const { return collectives[collective].key; }
  uint64_t numCollectives() const { return collectives.size(); }
  /// Plants a fault for tests: sums of `collective` omit the contribution of `rank`.
  void dropContribution(uint32_t collective, uint32_t rank) {
    collectives[collective].dropped = rank;
  }
  /// Returns true if arenas must be in memory that other processes can map.
  virtual bool needsSharedArenas() const { return false; }
  virtual void registerArena(uint32_t rank, const ArenaMemory &memory) = 0;
  /// Releases the arenas. After the call, no collective may be started. A second call does nothing.
  virtual void releaseArenas() {}
  /// Connects to all other processes and checks that they have added equal collectives. Throws
  /// Error; its message names missing ranks.
  virtual void connect() = 0;

  //===- Collectives ------------------------------------------------------===//

  void start(uint32_t collective, uint32_t rank, const std::byte *source, std::byte *target);
  /// Announces that the next two collectives that `rank` starts form one launch. The rank must
  /// start both before it waits for any collective.
  virtual void joinNext(uint32_t /*rank*/) {}
  /// Waits for a collective. The threads of `pool` may be used for copies and sums. Throws Error or
  /// Abandoned as described in (R8).
  void wait(uint32_t collective, uint32_t rank, WorkerPool &pool);
  /// Returns true if a thread may wait for a collective that another thread has started (R9).
  virtual bool allowsTransferWorkers() const { return true; }
  /// Returns true if collectives run on the rank's streams (R10).
  virtual bool isOnDevice() const { return false; }
  /// Returns the time stamps of a collective on the rank's streams, if the queue of the rank's
  /// arena has a timeline. The rank must have waited for the collective.
  virtual DeviceSpan spanOnDevice(uint32_t collective, uint32_t rank) const;
  /// Returns the index of the GPU of the first rank here. The others use the next GPUs, cyclically.
  virtual uint32_t firstDevice() const { return 0; }
  /// Returns the numbers of bytes that the first rank here has exchanged, by type of collective. A
  /// completed collective counts the larger of its source and target.
  const uint64_t *exchangedBytes() const { return exchanged; }
  /// Adds `times` times `bytes` to exchangedBytes(), for collectives that a CUDA graph executes.
  void countExchanged(const uint64_t (&bytes)[4], int64_t times);
  /// Returns the number of bytes that each rank would send in a ring algorithm: the larger of
  /// source and target times (n - 1) / n for n members, and twice this number for an all_reduce.
  uint64_t wireBytes(uint32_t collective) const;

  //===- Between programs, by one thread per process. Defaults: one process ----------------===//

  /// Gathers the `bytes` bytes `mine` of every process into `all`, in the order of ranks. `bytes`
  /// is at most exchangeLimit. Allocates no memory.
  virtual void exchange(const void *mine, size_t bytes, void *all);
  static constexpr size_t exchangeLimit = 8192;
  void barrier() { exchange(nullptr, 0, nullptr); }
  /// Copies `bytes` bytes from `data` in the process of `rank` to `into` in the process of rank 0.
  /// All processes must call collect(), but only these two processes use `data` and `into`.
  virtual void collect(uint32_t rank, const void *data, size_t bytes, void *into);
  /// Leaves the run. After leave(), the end of this process is not a failure.
  virtual void leave() { barrier(); }

  //===- Failure ----------------------------------------------------------===//

  /// Makes all waits of this process, and in some backends of all processes, throw Abandoned. Any
  /// thread may call abort(), also several times. The process will end with `status`.
  virtual void abort(fsdprt_status status) { watchdog->fail(status); }
  /// Returns the error that a rank throws if another rank has failed. Over MPI, the error has the
  /// status of the failed rank, because mpirun returns the exit code of the first process that
  /// ends.
  virtual Abandoned abandoned() const { return Abandoned(); }
  /// Throws Error or Abandoned if a library has reported an error, or if another rank has failed.
  virtual void poll() {
    if (watchdog->hasFailed())
      throw abandoned();
  }
  /// Returns text such as "collective 42 (all_gather 'h.0 gather', unit 'h.0')".
  std::string describe(uint32_t collective) const;
  /// Returns a text with the position of a rank in its program, and the rank's last collective.
  std::string describeProgress(uint32_t rank) const;

protected:
  Communicator(Mesh mesh, LocalRanks localRange, std::shared_ptr<Watchdog> watchdog)
      : mesh(std::move(mesh)), localRange(localRange), watchdog(std::move(watchdog)) {}

  virtual void begin(uint32_t collective, uint32_t rank, const std::byte *source,
                     std::byte *target) = 0;
  virtual void finish(uint32_t collective, uint32_t rank, WorkerPool &pool) = 0;

  struct Groups {
    std::vector<uint32_t> axes;
    std::vector<std::vector<uint32_t>> members; ///< for each rank, the ranks of its group, in order
    std::vector<uint32_t> index;                ///< for each rank, its index in its group
  };
  struct Collective {
    CollectiveKey key;
    const Groups *groups;
    uint32_t dropped = UINT32_MAX; ///< rank whose contribution is omitted, or UINT32_MAX
  };
  const std::vector<uint32_t> &membersOf(uint32_t collective, uint32_t rank) const {
    return collectives[collective].groups->members[rank];
  }
  /// Throws the Error of a wait of `rank` if the progress timeout of this wait has expired.
  [[noreturn]] void reportMissing(uint32_t collective, uint32_t rank,
                                  const std::vector<uint32_t> &missing) const;

  Mesh mesh;
  LocalRanks localRange;
  std::shared_ptr<Watchdog> watchdog; ///< other communicators may use it too
  std::vector<Collective> collectives;

private:
  const Groups *groupsOver(const std::vector<uint32_t> &axes);

  std::vector<std::unique_ptr<Groups>> groups;
  uint64_t exchanged[4] = {};
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_COMMUNICATOR_H
