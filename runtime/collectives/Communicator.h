//===- Communicator.h - Collectives between ranks ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the interface that every backend of collectives implements. The ranks of a mesh are
// distributed over processes. A process runs the ranks [firstRank, firstRank + localRanks), each as
// a thread. A process has either all ranks of the mesh or a single rank. Comments call the ranks of
// a process its own ranks, or the ranks here.
//
//   Set-up: the thread that creates the ranks makes these calls, in equal order in all processes:
//       add(key) for each collective command; registerArena(rank, ...) for each own rank; connect()
//   Collectives: the thread of each own rank makes these calls, in equal order in all members:
//       start(c, rank, source, target) ... wait(c, rank, pool)     other calls may come in between
//   Between programs: the thread that runs them makes these calls, in equal order everywhere:
//       exchange(...), collect(...), barrier()
//
// Every backend obeys these rules:
//
// (R1) `source` and `target` are in the arena that was registered for the rank. From the call of
//      start until wait returns, the rank neither reads the target nor writes the source.
// (R2) When wait returns, the target is complete, and the other members no longer read the source.
//      From then on, the rank may read the target and write the source.
// (R3) The target of an all_gather is the concatenation of the sources of all members, in the order
//      of the group. The source of a rank may be the rank's own segment of the target. The target
//      of a broadcast is the source of member `root`. The target of a shift is the source of the
//      member before, and that of the last member for the first one.
// (R4) The target of a reduce_scatter has `count` elements, which are the rank's own segment of the
//      sum of all sources. The target of an all_reduce also has `count` elements, and is the whole
//      sum. An all_reduce may be in place (source == target).
// (R5) A sum is ((+0 + x0) + x1) + ... in the order of the group. If the elements are f64, a sum is
//      computed in f64, and otherwise in f32. The sum is rounded to the type of the elements once,
//      at the end. For an average, the sum is multiplied by 1/n before this rounding. All backends
//      therefore compute the same bits as Reduce.h.
// (R6) `count` may be 0, a group may have only one member, and a rank may start any number of
//      collectives before it waits for one of them. When wait has returned, the same collective may
//      be started again.
// (R7) Neither start nor wait allocates memory. start does not wait for other ranks.
// (R8) A call of wait either returns, or throws Error or Abandoned. It throws Error if a member
//      dies (status lost), or if a member makes no progress within the time limit (status hung). It
//      throws Abandoned if another rank has failed or abort() was called. The message of the Error
//      names the collective, the missing ranks, and the commands that these ranks are known to have
//      started last.
// (R9) All calls of start for a rank are made by the same thread. If allowsTransferWorkers() is
//      true, wait may be called by any thread.
// (R10) If isOnDevice() is true, each arena has a queue with streams. start and wait then enqueue
//       marks on the compute stream of the rank. In R1 and R2, these marks take the place of the
//       calls: the rules apply to the commands that the stream executes before and after the marks.
//       The host only waits until the other ranks have called start, and not until the commands
//       have run.
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
class DeviceAllocator;
struct DeviceSpan;

/// Describes a collective command. All ranks have equal descriptions of the command.
struct CollectiveKey {
  fb::CollectiveKind kind;
  fb::Reduction reduction;
  DType dtype;
  uint64_t count; ///< elements of the target of a reduce_scatter, otherwise of the source
  uint32_t root;  ///< for a broadcast: index of the sender in its group
  std::vector<uint32_t> axes; ///< mesh axes over which the groups extend (Mesh::group)
  uint32_t id;                ///< index of the command in the program, used in messages
  std::string label, unit;    ///< label and unit of the command, used in messages
  /// true if the source or the target is a rank's piece of a buffer, so that its offset in the
  /// arena differs between ranks
  bool isPiece = false;

  /// Returns true if each target is the whole source of one member.
  bool hasOneSender() const {
    return kind == fb::CollectiveKind::broadcast || kind == fb::CollectiveKind::shift;
  }
  /// Returns the member whose source becomes the target of member `own` of a group of `members`
  /// ranks. The collective must have one sender.
  uint32_t senderFor(uint32_t own, size_t members) const {
    return kind == fb::CollectiveKind::broadcast ? root
           : own == 0                            ? static_cast<uint32_t>(members - 1)
                                                 : own - 1;
  }
};

constexpr size_t collectiveKinds = 5; ///< number of kinds of collectives

/// A rank's arena, without its part in host memory if it is on a GPU. `descriptor` is the file
/// descriptor of the arena's memory if other processes can map this memory, and otherwise -1. If
/// the arena is on a GPU, `queue` contains the streams that access the arena.
struct ArenaMemory {
  std::byte *base = nullptr;
  uint64_t bytes = 0;
  int descriptor = -1;
  CudaQueue *queue = nullptr;
};

/// The range of those ranks that are threads of this process.
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
  /// Returns true in the process of rank 0. This process prints, and writes the files of the run.
  bool isRoot() const { return localRange.first == 0; }
  virtual uint32_t processes() const = 0;
  virtual const char *name() const = 0;
  /// Returns a text that names the means by which the ranks communicate, or a library and its
  /// version.
  virtual const char *text() const { return name(); }
  Watchdog &getWatchdog() { return *watchdog; }
  const std::shared_ptr<Watchdog> &shareWatchdog() const { return watchdog; }

  //===- Set-up -----------------------------------------------------------===//

  /// Adds a collective and returns its index. The collective that is added first has index 0.
  uint32_t add(CollectiveKey key);
  const CollectiveKey &getKey(uint32_t collective) const { return collectives[collective].key; }
  uint64_t numCollectives() const { return collectives.size(); }
  /// Plants a fault for tests: sums of `collective` omit the contribution of `rank`.
  void dropContribution(uint32_t collective, uint32_t rank) {
    collectives[collective].dropped = rank;
  }
  /// Returns true if arenas must be in memory that other processes can map.
  virtual bool needsSharedArenas() const { return false; }
  /// Returns the object that allocates arenas on GPUs, or null for the driver.
  virtual DeviceAllocator *arenaAllocator() { return nullptr; }
  virtual void registerArena(uint32_t rank, const ArenaMemory &memory) = 0;
  /// Releases the arenas. No collective may be started after this call. If the arenas were released
  /// before, does nothing.
  virtual void releaseArenas() {}
  /// Connects this process to all other processes, and checks that all processes have added equal
  /// collectives. Throws Error if this fails. If ranks are missing, the message of the Error names
  /// these ranks.
  virtual void connect() = 0;

  //===- Collectives ------------------------------------------------------===//

  void start(uint32_t collective, uint32_t rank, const std::byte *source, std::byte *target);
  /// Announces that the next two collectives that `rank` starts are launched together. The rank
  /// must start both of them before it waits for any collective.
  virtual void joinNext(uint32_t /*rank*/) {}

  /// Waits for a collective. The threads of `pool` may be used for copies and sums. Throws Error or
  /// Abandoned as described in (R8).
  void wait(uint32_t collective, uint32_t rank, WorkerPool &pool);
  /// Returns true if a thread may wait for a collective that a different thread has started (R9).
  virtual bool allowsTransferWorkers() const { return true; }
  /// Returns true if collectives run on the streams of the rank (R10).
  virtual bool isOnDevice() const { return false; }
  /// Returns the time stamps of a collective on the streams of the rank. The rank must have waited
  /// for the collective. Returns no time stamps if the queue of the rank's arena has no timeline.
  virtual DeviceSpan spanOnDevice(uint32_t collective, uint32_t rank) const;
  /// Returns the index of the GPU that the first rank of this process uses. The other ranks use the
  /// next GPUs, modulo the number of GPUs.
  virtual uint32_t firstDevice() const { return 0; }
  /// Returns how many bytes the first rank of this process has exchanged, for each type of
  /// collective. Each completed collective adds the size of its source or of its target, whichever
  /// is larger.
  const uint64_t *exchangedBytes() const { return exchanged; }
  /// Adds `bytes`, multiplied by `times`, to exchangedBytes(). The caller counts in this way
  /// the collectives that are launched as parts of a CUDA graph.
  void countExchanged(const uint64_t (&bytes)[collectiveKinds], int64_t times);
  /// Returns the number of bytes that each of n members would send if the collective used a ring
  /// algorithm. This number is (n - 1) / n times the size of the source or of the target, whichever
  /// is larger. For an all_reduce, the number is twice as large. For a shift, it is the size of the
  /// source.
  uint64_t wireBytes(uint32_t collective) const;

  //===- Between programs -------------------------------------------------===//

  /// Each process passes `bytes` bytes at `mine`. Stores the bytes of all processes in `all`, in
  /// the order of the ranks. `bytes` is at most exchangeLimit. Allocates no memory. Between
  /// programs, one thread per process calls this function and the functions below, whose default
  /// implementations suffice for a single process.
  virtual void exchange(const void *mine, size_t bytes, void *all);
  static constexpr size_t exchangeLimit = 8192;
  void barrier() { exchange(nullptr, 0, nullptr); }
  /// Copies `bytes` bytes from `data` in the process of `rank` to `into` in the process of rank 0.
  /// All processes must call collect(), although only these two processes use `data` or `into`.
  virtual void collect(uint32_t rank, const void *data, size_t bytes, void *into);
  /// Leaves the run. If this process ends after this call, the other processes report no failure.
  virtual void leave() { barrier(); }

  //===- Failure ----------------------------------------------------------===//

  /// Makes all waits of this process throw Abandoned. In some backends, the waits of all other
  /// processes then also throw Abandoned. Any thread may call abort(), and it may be called several
  /// times. `status` is the status with which this process will end.
  virtual void abort(fsdprt_status status) { watchdog->fail(status); }
  /// Returns the error that a rank throws because another rank has failed. Over MPI, this error has
  /// the status of the rank that has failed, because mpirun returns the exit code of the process
  /// that ends first.
  virtual Abandoned abandoned() const { return Abandoned(); }
  /// Throws Error if a library has reported an error. Throws Abandoned if another rank has failed.
  virtual void poll() {
    if (watchdog->hasFailed())
      throw abandoned();
  }
  /// Returns a text such as "collective 42 (all_gather 'h.0 gather', unit 'h.0')".
  std::string describe(uint32_t collective) const;
  /// Returns a text that describes how far a rank is in its program, and its last collective.
  std::string describeProgress(uint32_t rank) const;

protected:
  Communicator(Mesh mesh, LocalRanks localRange, std::shared_ptr<Watchdog> watchdog)
      : mesh(std::move(mesh)), localRange(localRange), watchdog(std::move(watchdog)) {}

  virtual void begin(uint32_t collective, uint32_t rank, const std::byte *source,
                     std::byte *target) = 0;
  virtual void finish(uint32_t collective, uint32_t rank, WorkerPool &pool) = 0;

  struct Groups {
    std::vector<uint32_t> axes;
    /// for each rank: the ranks of its group, in the order of the group
    std::vector<std::vector<uint32_t>> members;
    std::vector<uint32_t> index; ///< for each rank: index of the rank in its group
  };
  struct Collective {
    CollectiveKey key;
    const Groups *groups;
    /// rank whose contribution is omitted; UINT32_MAX if no contribution is omitted
    uint32_t dropped = UINT32_MAX;
  };
  const std::vector<uint32_t> &membersOf(uint32_t collective, uint32_t rank) const {
    return collectives[collective].groups->members[rank];
  }
  /// Ends a wait of `rank`: throws Error, whose message says that the ranks `missing` have made no
  /// progress within the time limit.
  [[noreturn]] void reportMissing(uint32_t collective, uint32_t rank,
                                  const std::vector<uint32_t> &missing) const;

  Mesh mesh;
  LocalRanks localRange;
  std::shared_ptr<Watchdog> watchdog; ///< other communicators may share this watchdog
  std::vector<Collective> collectives;

private:
  const Groups *groupsOver(const std::vector<uint32_t> &axes);

  std::vector<std::unique_ptr<Groups>> groups;
  uint64_t exchanged[collectiveKinds] = {};
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_COMMUNICATOR_H
