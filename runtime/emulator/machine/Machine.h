//===- Machine.h - Grids, clusters, blocks and warps that run ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Clusters run one after another. The warps of a cluster take turns in a fixed order; a turn ends
// when the warp waits or has executed a number of instructions. Lanes that diverge at a branch form
// a tree of splits, whose parent waits at the point of reconvergence.
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
  LaneMask lanes = 0;   ///< lanes that wait; other lanes of the split were inactive
  uint32_t barrier = 0; ///< number of the Barrier
  LaneMask mask = 0;    ///< of the WarpBarrier
  uint64_t address = 0; ///< of the Phase: its mbarrier, in shared::cluster
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

/// Groups of cp.async that a thread has not waited for: the agent's time at the end of each.
struct AsyncCopies {
  std::deque<Time> groups;
};

/// Groups of cp.async.bulk: the agents, and their times after the reads and after the writes.
struct BulkGroups {
  struct Copy {
    uint32_t agent;
    Time read, done;
  };
  using Group = std::vector<Copy>;
  Group open;
  std::deque<Group> closed;
  size_t readCount = 0; ///< closed groups, from the first, whose reads the thread has waited for
};

class Warp {
public:
  Warp(Block &block, unsigned index, LaneMask lanes);
  /// Runs at most `turn` instructions. Returns false if it ran none, because all lanes wait or have
  /// left.
  bool run(uint64_t turn);
  bool isOver() const { return !live; }

  //===- For instructions --------------------------------------------------===//

  template <typename T>
  T *at(Slot slot) {
    return reinterpret_cast<T *>(registers.get() + size_t(slot) * slotBytes);
  }
  LaneMask &predicate(Slot slot) { return *at<LaneMask>(slot); }
  LaneMask &initialised(Slot slot) { return initialisedLanes[slot]; }
  /// Throws an Error with the source location, and the lane, warp and block.
  [[noreturn]] void fail(LaneMask lanes, const char *text, ...) const
      __attribute__((format(printf, 3, 4)));
  /// Fails if a lane of the slot has not been written.
  void checkRead(Slot slot, LaneMask lanes) const;
  /// Returns the warp in messages: "warp 1 of block (0,0,0)".
  std::string name() const;
  std::string nameOfLanes(LaneMask lanes) const;
  /// Returns the number of a lane's thread in its cluster, for VectorClocks.
  uint32_t thread(unsigned lane) const { return firstThread + lane; }

  Block &block;
  const Program &program;
  const unsigned index;
  uint32_t firstThread;      ///< number of lane 0's thread in the cluster
  LaneMask live;             ///< lanes that have not left
  uint32_t serial = 0;       ///< number of instructions
  uint32_t split = 0;        ///< current split
  std::vector<Split> splits; ///< each parent precedes its children
  Storage local;
  LaneMask fenced = 0;                   ///< lanes that have executed a fence
  std::vector<const uint8_t *> observed; ///< per lane: address of its last relaxed read
  std::vector<BulkGroups> bulk;          ///< per lane, created at their first use
  std::vector<AsyncCopies> copies;       ///< per lane, created at their first use
  LibraryGemm products;                  ///< wgmma in flight
  uint64_t clusterPhase[warpSize] =
      {}; ///< per lane: phase of its last barrier.cluster.arrive, plus one
  uint32_t currentPc() const { return splits[split].pc; }

  /// Releases splits that wait at bar.warp.sync when all of their lanes have arrived.
  void releaseWarpBarriers();
  /// Makes lanes of the current split wait, and with them the split.
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
  uint64_t stalled = 0; ///< instructions since the splits changed
};

/// PTX ISA, "Parallel Synchronization and Communication Instructions: barrier".
struct NamedBarrier {
  uint32_t expected = 0; ///< threads; 0: none has arrived
  uint32_t arrived = 0;
  bool isAll = false;    ///< expects all threads of the block that have not left
  uint8_t reduction = 0; ///< of barrier.red
  uint32_t count = 0;    ///< predicates that hold
  Released released;
};

/// PTX ISA, "mbarrier objects".
struct Mbarrier {
  uint32_t count = 0, pending = 0, phase = 0;
  int64_t bytes = 0;        ///< announced and not yet received
  uint32_t maker = 0;       ///< thread of mbarrier.init,
  Time made = 0;            ///< its time there,
  uint32_t instruction = 0; ///< and the instruction
  bool isFenced = false;    ///< by fence.mbarrier_init
  Released arriving, ended;
  uint64_t bits() const;
};

class Block {
public:
  Block(Cluster &cluster, Dim index, unsigned rank);
  uint32_t liveThreads() const;
  /// Releases the threads that wait at a barrier when all have arrived.
  void completeIfAllCame(unsigned number);
  /// Checks that no other block still uses the shared memory, when `last`, the warp of the last
  /// threads, leaves.
  void checkEnd(const Warp &last) const;
  /// Completes barriers that wait for all threads, after some have left.
  void threadsLeft();

  Cluster &cluster;
  const Dim index;
  const unsigned rank;
  Storage shared;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<Warpgroup> warpgroups; ///< up to the last one that has used wgmma
  NamedBarrier barriers[16];
  std::map<uint64_t, Mbarrier> mbarriers; ///< by offset in shared memory
};

class Cluster {
public:
  Cluster(Grid &grid, uint64_t linear);
  void run();
  [[noreturn]] void reportDeadlock() const;

  Grid &grid;
  const Dim index;
  const uint32_t number;  ///< counted over all launches, from 1
  const uint32_t threads; ///< of all warps, whole ones; agents of threads and of warpgroups follow
  VectorClocks clocks;
  std::vector<std::unique_ptr<Block>> blocks;
  uint32_t agentOf(uint32_t thread) const { return threads + thread; }
  uint32_t warpgroupAgent(uint32_t firstThread) const {
    return 2 * threads + firstThread / (4 * warpSize);
  }
  uint32_t liveThreads() const;
  /// Returns true if an access of another cluster is ordered before the current accesses of this
  /// one.
  bool isBefore(const Cell::Access &other) const;
  /// Releases of other clusters that this cluster has acquired, by the number of the cluster.
  std::map<uint32_t, RowRef> foreign;
  /// Releases the threads that wait at barrier.cluster when all have arrived.
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
  std::vector<uint64_t> executed; ///< per instruction
  uint64_t stepsLeft;
  uint64_t sharedBytes;

private:
  void checkShape() const;
  void passArguments();
  void countOpcodes();
};

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_MACHINE_H
