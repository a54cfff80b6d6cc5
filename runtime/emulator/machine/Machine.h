//===- Machine.h - Grids, clusters, blocks and warps that run ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Clusters run one after another; the warps of a cluster in turn, each until it waits or its turn
// is over, always in the same order. Lanes that part at a branch are a tree of splits: the parent
// waits where they meet again.
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

/// What lanes wait for.
struct Waiting {
  enum Kind : uint8_t {
    Nothing,
    WarpBarrier,
    Barrier,
    ClusterBarrier,
    Phase,
    Product
  } kind = Nothing;
  LaneMask lanes = 0;   ///< that wait: others of the split were not active
  uint32_t barrier = 0; ///< of Barrier: its number
  LaneMask mask = 0;    ///< of WarpBarrier
  uint64_t address = 0; ///< of Phase: the mbarrier, as an address in shared::cluster
  uint32_t parity = 0;
  const Instruction *instruction = nullptr;
};

/// Lanes that are at one place.
struct Split {
  uint32_t pc = 0, meet = nowhere;
  LaneMask mask = 0;
  int32_t parent = -1;
  uint32_t children = 0;
  bool isOver = false;
  Waiting waiting;

  bool isReady() const { return !isOver && !children && waiting.kind == Waiting::Nothing; }
};

/// Groups of cp.async that a thread has not waited for: the time of its agent at the end of each.
struct AsyncCopies {
  std::deque<Time> groups;
};

/// Groups of cp.async.bulk: which agents have read and done what of them until when.
struct BulkGroups {
  struct Copy {
    uint32_t agent;
    Time read, done;
  };
  using Group = std::vector<Copy>;
  Group open;
  std::deque<Group> closed;
  size_t readCount =
      0; ///< of the closed ones, from the first, those whose reads the thread knows of
};

class Warp {
public:
  Warp(Block &block, unsigned index, LaneMask lanes);
  /// Runs `turn` instructions at most. False: it ran none, since all lanes wait or are over.
  bool run(uint64_t turn);
  bool isOver() const { return !live; }

  //===- For instructions --------------------------------------------------===//

  template <typename T>
  T *at(Slot slot) {
    return reinterpret_cast<T *>(registers.get() + size_t(slot) * slotBytes);
  }
  LaneMask &predicate(Slot slot) { return *at<LaneMask>(slot); }
  LaneMask &initialised(Slot slot) { return initialisedLanes[slot]; }
  /// Throws Error that says where, and which lane of which warp and block.
  [[noreturn]] void fail(LaneMask lanes, const char *text, ...) const
      __attribute__((format(printf, 3, 4)));
  /// That the slot's lanes have been written.
  void checkRead(Slot slot, LaneMask lanes) const;
  /// "warp 1 of block (0,0,0)".
  std::string name() const;
  std::string nameOfLanes(LaneMask lanes) const;
  /// The number of a lane's thread in its cluster, for VectorClocks.
  uint32_t thread(unsigned lane) const { return firstThread + lane; }

  Block &block;
  const Program &program;
  const unsigned index;
  uint32_t firstThread;      ///< in the cluster
  LaneMask live;             ///< lanes that have not left
  uint32_t serial = 0;       ///< of instructions
  uint32_t split = 0;        ///< the one that runs
  std::vector<Split> splits; ///< a parent is before its children
  Storage local;
  LaneMask fenced = 0;                   ///< that have executed a fence
  std::vector<const uint8_t *> observed; ///< per lane: where its last relaxed read was
  std::vector<BulkGroups> bulk;          ///< per lane, made at their first use
  std::vector<AsyncCopies> copies;       ///< per lane, made at their first use
  LibraryGemm products;                  ///< of wgmma
  uint64_t clusterPhase[warpSize] = {};  ///< of each lane's last barrier.cluster.arrive, plus one
  uint32_t currentPc() const { return splits[split].pc; }

  /// Splits that wait at bar.warp.sync go on when all of their lanes have come.
  void releaseWarpBarriers();
  /// Lanes of the current split wait, and with them all of the split.
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
  uint64_t stalled = 0; ///< instructions since splits changed
};

/// PTX ISA, "Parallel Synchronization and Communication Instructions: barrier".
struct NamedBarrier {
  uint32_t expected = 0; ///< threads; 0: nobody has come
  uint32_t arrived = 0;
  bool isAll = false;    ///< all threads of the block that have not left
  uint8_t reduction = 0; ///< of barrier.red
  uint32_t count = 0;    ///< of predicates that hold
  Released released;
};

/// PTX ISA, "mbarrier objects".
struct Mbarrier {
  uint32_t count = 0, pending = 0, phase = 0;
  int64_t bytes = 0;        ///< announced, and not yet there
  uint32_t maker = 0;       ///< the thread of mbarrier.init,
  Time made = 0;            ///< its time then,
  uint32_t instruction = 0; ///< and where
  bool isFenced = false;    ///< by fence.mbarrier_init
  Released arriving, ended;
  uint64_t bits() const;
};

class Block {
public:
  Block(Cluster &cluster, Dim index, unsigned rank);
  uint32_t liveThreads() const;
  /// Lets those that wait go on when all have come.
  void completeIfAllCame(unsigned number);
  /// All threads that are left are leaving, those of `last`: nobody else may still use the shared
  /// memory.
  void checkEnd(const Warp &last) const;
  /// When threads leave, barriers that wait for all others may be complete.
  void threadsLeft();

  Cluster &cluster;
  const Dim index;
  const unsigned rank;
  Storage shared;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<Warpgroup> warpgroups; ///< those that have used wgmma, and some before them
  NamedBarrier barriers[16];
  std::map<uint64_t, Mbarrier> mbarriers; ///< by their offsets in shared memory
};

class Cluster {
public:
  Cluster(Grid &grid, uint64_t linear);
  void run();
  [[noreturn]] void reportDeadlock() const;

  Grid &grid;
  const Dim index;
  const uint32_t number; ///< over all launches, from 1
  const uint32_t
      threads; ///< of all warps, whole ones; after them come their agents, and those of warpgroups
  VectorClocks clocks;
  std::vector<std::unique_ptr<Block>> blocks;
  uint32_t agentOf(uint32_t thread) const { return threads + thread; }
  uint32_t warpgroupAgent(uint32_t firstThread) const {
    return 2 * threads + firstThread / (4 * warpSize);
  }
  uint32_t liveThreads() const;
  /// Whether what another cluster did is ordered before what this one does.
  bool isBefore(const Cell::Access &other) const;
  /// What others have released that threads of this cluster have acquired, by the others' numbers.
  std::map<uint32_t, RowRef> foreign;
  /// Of barrier.cluster: lets those that wait go on when all have come.
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
