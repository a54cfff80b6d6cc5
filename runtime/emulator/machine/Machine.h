//===- Machine.h - Grids, clusters, blocks and warps that run ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Clusters run one after another, or several at random (Launch::seed). The warps of a cluster take
// turns in a fixed order. The turn of a warp ends when the warp waits or has executed a given
// number of instructions. The lanes of a warp are divided into splits: the lanes of a split execute
// the same instruction. When the lanes of a split diverge at a branch, the split becomes the parent
// of the splits for the paths, and waits at the instruction where the paths meet again.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_MACHINE_H
#define FSDPRT_EMULATOR_MACHINE_MACHINE_H

#include "emulator/Emulator.h"
#include "emulator/machine/Memory.h"
#include "emulator/machine/Warpgroup.h"
#include <random>

namespace fsdprt::emulate {

class Block;
class Cluster;
class Grid;

struct Dim {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t(x) * y * z; }
  Dim at(uint64_t linear) const {
    return {uint32_t(linear % x), uint32_t(linear / x % y), uint32_t(linear / x / y)};
  }
};

struct Waiting {
  enum Kind : uint8_t {
    Nothing,
    WarpBarrier,
    Barrier,
    ClusterBarrier,
    Phase,
    Product
  } kind = Nothing;
  LaneMask lanes = 0;   ///< lanes that wait; in the other lanes of the split, the guard was false
  uint32_t barrier = 0; ///< index of the Barrier in Block::barriers
  LaneMask mask = 0;    ///< lanes that take part in the WarpBarrier
  uint64_t address = 0; ///< for Phase: shared::cluster address of the mbarrier
  uint32_t parity = 0;
  const Instruction *instruction = nullptr;
};

struct Split {
  uint32_t pc = 0, meet = nowhere;
  LaneMask mask = 0;
  int32_t parent = -1;
  uint32_t children = 0;
  bool isOver = false;
  Waiting waiting;

  bool isReady() const { return !isOver && !children && waiting.kind == Waiting::Nothing; }
};

/// The groups of cp.async copies of a thread for which the thread has not waited yet. A group is
/// represented by the time of the thread's agent (see VectorClocks.h) at the end of the group.
struct AsyncCopies {
  std::deque<Time> groups;
};

/// The groups of cp.async.bulk copies of a thread. Each copy contains the agent that makes the
/// accesses of the copy (see VectorClocks.h), and the times of this agent after the reads and after
/// the writes of the copy.
struct BulkGroups {
  struct Copy {
    uint32_t agent;
    Time read, done;
  };
  using Group = std::vector<Copy>;
  Group open;
  std::deque<Group> closed;
  size_t readCount = 0; ///< number of oldest groups in `closed` whose reads have ended
};

class Warp {
public:
  Warp(Block &block, unsigned index, LaneMask lanes);
  /// Runs at most `turn` instructions. Returns false if all lanes wait or have exited.
  bool run(uint64_t turn);
  bool isOver() const { return !live; }

  //===- For instructions --------------------------------------------------===//

  template <typename T>
  T *at(Slot slot) {
    return reinterpret_cast<T *>(registers.get() + size_t(slot) * slotBytes);
  }
  LaneMask &predicate(Slot slot) { return *at<LaneMask>(slot); }
  LaneMask &initialised(Slot slot) { return initialisedLanes[slot]; }
  /// Throws an Error that names the source location, lanes, warp and block.
  [[noreturn]] void fail(LaneMask lanes, const char *text, ...) const
      __attribute__((format(printf, 3, 4)));
  /// Fails if one of `lanes` has not written the slot.
  void checkRead(Slot slot, LaneMask lanes) const;
  /// Returns the name of the warp for messages: "warp 1 of block (0,0,0)".
  std::string name() const;
  std::string nameOfLanes(LaneMask lanes) const;
  /// Returns the index of a lane's thread in the cluster, for VectorClocks.
  uint32_t thread(unsigned lane) const { return firstThread + lane; }

  Block &block;
  const Program &program;
  const unsigned index;
  uint32_t firstThread;      ///< index of lane 0's thread in the cluster
  LaneMask live;             ///< lanes that have not exited
  uint32_t serial = 0;       ///< number of executed instructions
  uint32_t split = 0;        ///< index of the current split
  std::vector<Split> splits; ///< every parent has a smaller index than its children
  Storage local;
  LaneMask fenced = 0;                   ///< lanes that have executed a fence
  std::vector<const uint8_t *> observed; ///< for each lane: address of its last relaxed read
  std::vector<BulkGroups> bulk;          ///< bulk copies of each lane; empty before first use
  std::vector<AsyncCopies> copies;       ///< copies of each lane; empty before first use
  WarpProducts products;                 ///< wgmma in flight
  /// For each lane, one plus the phase in which the lane executed barrier.cluster.arrive. The
  /// number is 0 if the lane has executed barrier.cluster.wait since then.
  uint64_t clusterPhase[warpSize] = {};
  uint32_t currentPc() const { return splits[split].pc; }

  /// Releases splits that wait at bar.warp.sync if all lanes of the barrier have arrived.
  void releaseWarpBarriers();
  /// Makes the current split wait. `lanes` are its lanes that execute `instruction`.
  Step wait(Waiting::Kind kind, const Instruction &instruction, LaneMask lanes);

private:
  void runSplit(uint64_t &turn);
  bool execute(const Instruction &instruction, LaneMask active);
  void branch(const Instruction &instruction, LaneMask taken);
  void leave(LaneMask lanes);
  void arrive();
  bool chooseSplit();
  void freeParked();
  void fillConstants();
  void fillSpecials();

  struct Free {
    void operator()(uint8_t *bytes) const { std::free(bytes); }
  };
  std::unique_ptr<uint8_t, Free> registers;
  std::vector<LaneMask> initialisedLanes;
  uint64_t stalled = 0; ///< number of instructions since the last change of splits
};

/// State of a barrier (PTX ISA, "Parallel Synchronization and Communication Instructions:
/// barrier").
struct NamedBarrier {
  uint32_t expected = 0; ///< number of threads that must arrive; 0 if no thread has arrived
  uint32_t arrived = 0;
  bool isAll = false;    ///< true if all threads that have not exited must arrive
  uint8_t reduction = 0; ///< operation of barrier.red
  uint32_t count = 0;    ///< number of arrived threads whose predicate is true
  Released released;
};

/// State of an mbarrier (PTX ISA, "mbarrier objects").
struct Mbarrier {
  uint32_t count = 0, pending = 0, phase = 0;
  int64_t bytes = 0;        ///< number of announced bytes that have not arrived yet
  uint32_t maker = 0;       ///< thread that executed mbarrier.init
  Time made = 0;            ///< time of `maker` at mbarrier.init
  uint32_t instruction = 0; ///< index of the mbarrier.init instruction
  bool isFenced = false;    ///< true if a fence has followed mbarrier.init
  Released arriving, ended;
  uint64_t bits() const;
};

class Block {
public:
  Block(Cluster &cluster, Dim index, unsigned rank);
  uint32_t liveThreads() const;
  /// Releases the threads that wait at a barrier if all expected threads have arrived.
  void completeIfAllCame(unsigned number);
  /// Checks that no access of another block to this block's shared memory can happen after the end
  /// of this block. This function is called when the last threads of the block exit. The last
  /// threads belong to the warp `last`.
  void checkEnd(const Warp &last) const;
  /// This function is called after threads have exited. A barrier for all threads no longer waits
  /// for these threads, so it is completed if all other threads have arrived.
  void threadsLeft();

  Cluster &cluster;
  const Dim index;
  const unsigned rank;
  Storage shared;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<Warpgroup> warpgroups; ///< all warpgroups up to the last that has used wgmma
  NamedBarrier barriers[16];
  std::map<uint64_t, Mbarrier> mbarriers; ///< key: offset in shared memory
};

class Cluster {
public:
  Cluster(Grid &grid, uint64_t linear);
  /// Gives each warp a turn. The turns have random lengths if there is a random generator. Returns
  /// false if all warps have ended.
  bool runRound(std::minstd_rand *random);
  [[noreturn]] void reportDeadlock() const;

  Grid &grid;
  const Dim index;
  const uint32_t number;  ///< 1 for the first cluster of the first launch, then 2, ...
  const uint32_t threads; ///< number of threads (32 per warp); agents have the next indices
  VectorClocks clocks;
  std::vector<std::unique_ptr<Block>> blocks;
  uint32_t agentOf(uint32_t thread) const { return threads + thread; }
  uint32_t warpgroupAgent(uint32_t firstThread) const {
    return 2 * threads + firstThread / (4 * warpSize);
  }
  uint32_t liveThreads() const;
  /// Returns true if `other`, an access of another cluster, is ordered before the accesses that
  /// this cluster makes from now on.
  bool isBefore(const Cell::Access &other) const;
  /// The releases of other clusters that this cluster has acquired. The key is the Cluster::number
  /// of the other cluster.
  std::map<uint32_t, RowRef> foreign;
  /// Releases the threads that wait at barrier.cluster if all threads of the cluster have arrived.
  void completeIfAllCame();
  uint64_t bulkCopies = 0;
  uint32_t arrived = 0;
  uint64_t phase = 0;
  Released arriving, released;
};

class Grid {
public:
  Grid(const Program &program, Memory &memory, const Variables &variables, const Launch &launch,
       Counters &counters);
  void run();

  const Program &program;
  Memory &memory;
  const Variables &variables;
  const Launch &launch;
  Counters &counters;
  Dim grid, block, cluster;
  Storage parameters;
  std::vector<uint64_t> executed; ///< number of executions of each instruction
  uint64_t stepsLeft;
  uint64_t sharedBytes;

private:
  void checkShape() const;
  void passArguments();
  void runClusters();
  void countOpcodes();
};

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_MACHINE_H
