//===- Machine.h - Grids, clusters, blocks and warps that run ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Clusters run one after another. The warps of a cluster take turns in a fixed order; a turn ends
// when the warp waits or has executed a given number of instructions. Lanes that diverge at a
// branch form a tree of splits; the parent split waits at the point of reconvergence.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_MACHINE_H
#define FSDPRT_EMULATOR_MACHINE_MACHINE_H

#include "emulator/Emulator.h"
#include "emulator/machine/Memory.h"
#include "emulator/machine/Warpgroup.h"

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

/// The event that lanes wait for.
struct Waiting {
  enum Kind : uint8_t {
    Nothing,
    WarpBarrier,
    Barrier,
    ClusterBarrier,
    Phase,
    Product
  } kind = Nothing;
  LaneMask lanes = 0;   ///< lanes that wait; the guard of other lanes of the split was false
  uint32_t barrier = 0; ///< index of the Barrier in Block::barriers
  LaneMask mask = 0;    ///< lanes that take part in the WarpBarrier
  uint64_t address = 0; ///< address of the mbarrier in shared::cluster, for Phase
  uint32_t parity = 0;
  const Instruction *instruction = nullptr;
};

/// Lanes at the same instruction.
struct Split {
  uint32_t pc = 0, meet = nowhere;
  LaneMask mask = 0;
  int32_t parent = -1;
  uint32_t children = 0;
  bool isOver = false;
  Waiting waiting;

  bool isReady() const { return !isOver && !children && waiting.kind == Waiting::Nothing; }
};

/// Groups of cp.async that a thread has not waited for, with the agent's time at each group's end.
struct AsyncCopies {
  std::deque<Time> groups;
};

/// Groups of cp.async.bulk. A copy records its agent, and the agent's times after the reads and
/// after the writes.
struct BulkGroups {
  struct Copy {
    uint32_t agent;
    Time read, done;
  };
  using Group = std::vector<Copy>;
  Group open;
  std::deque<Group> closed;
  size_t readCount = 0; ///< number of oldest closed groups whose reads have been awaited
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
  std::vector<Split> splits; ///< each parent precedes its children
  Storage local;
  LaneMask fenced = 0;                   ///< lanes that have executed a fence
  std::vector<const uint8_t *> observed; ///< for each lane, address of its last relaxed read
  std::vector<BulkGroups> bulk;          ///< one per lane; empty before the first use
  std::vector<AsyncCopies> copies;       ///< one per lane; empty before the first use
  WarpProducts products;                 ///< wgmma in flight
  /// For each lane, 1 + the phase of its last barrier.cluster.arrive; 0 after barrier.cluster.wait.
  uint64_t clusterPhase[warpSize] = {};
  uint32_t currentPc() const { return splits[split].pc; }

  /// Releases splits that wait at bar.warp.sync if all lanes of the barrier have arrived.
  void releaseWarpBarriers();
  /// Makes lanes of the current split, and thereby the whole split, wait.
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
  uint64_t stalled = 0; ///< instructions executed since the splits last changed
};

/// State of a barrier (PTX ISA, "Parallel Synchronization and Communication Instructions:
/// barrier").
struct NamedBarrier {
  uint32_t expected = 0; ///< number of expected threads; 0 if none has arrived
  uint32_t arrived = 0;
  bool isAll = false;    ///< true if all threads that have not exited are expected
  uint8_t reduction = 0; ///< operation of barrier.red
  uint32_t count = 0;    ///< number of threads whose predicate is true
  Released released;
};

/// State of an mbarrier (PTX ISA, "mbarrier objects").
struct Mbarrier {
  uint32_t count = 0, pending = 0, phase = 0;
  int64_t bytes = 0;        ///< announced bytes that have not been received
  uint32_t maker = 0;       ///< thread that executed mbarrier.init
  Time made = 0;            ///< time of `maker` at mbarrier.init
  uint32_t instruction = 0; ///< index of the mbarrier.init instruction
  bool isFenced = false;    ///< fence.mbarrier_init has followed
  Released arriving, ended;
  uint64_t bits() const;
};

class Block {
public:
  Block(Cluster &cluster, Dim index, unsigned rank);
  uint32_t liveThreads() const;
  /// Releases the threads that wait at a barrier if all expected threads have arrived.
  void completeIfAllCame(unsigned number);
  /// Checks that no other block still uses the shared memory. Called when the last threads of the
  /// block exit, which are threads of the warp `last`.
  void checkEnd(const Warp &last) const;
  /// Completes the barriers whose only missing threads have exited.
  void threadsLeft();

  Cluster &cluster;
  const Dim index;
  const unsigned rank;
  Storage shared;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<Warpgroup> warpgroups; ///< warpgroups up to the last one that has used wgmma
  NamedBarrier barriers[16];
  std::map<uint64_t, Mbarrier> mbarriers; ///< key: offset in shared memory
};

class Cluster {
public:
  Cluster(Grid &grid, uint64_t linear);
  void run();
  [[noreturn]] void reportDeadlock() const;

  Grid &grid;
  const Dim index;
  const uint32_t number;  ///< 1 for the first cluster of the first launch, then 2, ...
  const uint32_t threads; ///< thread slots of all warps; indices of agents follow
  VectorClocks clocks;
  std::vector<std::unique_ptr<Block>> blocks;
  uint32_t agentOf(uint32_t thread) const { return threads + thread; }
  uint32_t warpgroupAgent(uint32_t firstThread) const {
    return 2 * threads + firstThread / (4 * warpSize);
  }
  uint32_t liveThreads() const;
  /// Returns true if `other`, an access of another cluster, precedes current accesses of this
  /// cluster.
  bool isBefore(const Cell::Access &other) const;
  /// Releases of other clusters that this cluster has acquired, by Cluster::number.
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
  void countOpcodes();
};

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_MACHINE_H
