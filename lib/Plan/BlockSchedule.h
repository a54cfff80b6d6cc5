//===- BlockSchedule.h - Starts and waits of one block ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_BLOCKSCHEDULE_H
#define FSDP_PLAN_BLOCKSCHEDULE_H

#include "fsdp/Analysis/CommandGraph.h"
#include "fsdp/Analysis/Schedule.h"
#include "fsdp/Analysis/Timeline.h"

namespace mlir::fsdp {

struct ScheduleLimits {
  /// Gathers of the forward and of the backward that may be started before an earlier one is waited for; -1: as many as
  /// hide them.
  int64_t forwardPrefetch = -1, backwardPrefetch = -1;
  /// Bytes that may be alive at a command, of this block's program; 0: no limit.
  int64_t bytes = 0;
  /// How much longer than estimated a collective is taken to be.
  double slack = 1;
};

/// Where the collectives of a block start and end: between its other commands, which keep their order but for
/// those that merely prepare a gather or take up a reduction.
class BlockSchedule {
public:
  /// `getSeconds`: of a command, once; `live`: bytes alive at each command of the graph as it stands.
  BlockSchedule(const CommandGraph &graph, llvm::function_ref<double(Operation *)> getSeconds, ArrayRef<int64_t> live);

  bool hasCollectives() const { return !collectives.empty(); }
  /// Chooses the places. Repeatable.
  void place(const ScheduleLimits &limits);
  /// What then happens, in order, when the links are `slower` times slower than estimated.
  Timeline simulate(double slower = 1) const;
  /// Seconds of one command behind the other; of what no places can beat.
  double getUnscheduled() const;
  double getLowerBound() const;
  /// The most bytes alive.
  int64_t getPeak() const;
  /// Moves the commands, and gives collectives their channel, waits and the attributes of Analysis/Schedule.h.
  void apply(Block &block) const;

private:
  static constexpr unsigned none = ~0u;
  enum class Role { fixed, collective, prologue, epilogue };
  struct Collective {
    unsigned command;       // its number in the graph
    bool isGather = false, isEarly = false; // isEarly: ends as soon as it can, nothing here waits for it
    bool isBackward = false;
    double seconds = 0;
    int64_t bytes = 0;                  // that live longer when it is moved: target of a gather, source of a reduction
    SmallVector<unsigned> prologue;     // commands that move with its start
    SmallVector<unsigned> epilogue;     // and with its wait
    unsigned earliest = 0, latest = 0;  // slots that the fixed commands allow
    unsigned start = 0, wait = 0;       // slots that were chosen: slot k is before fixed command k
    StringRef limit;
  };
  struct Event {
    enum class Kind { start, wait } kind;
    unsigned collective;
  };

  void findCollectives(llvm::function_ref<double(Operation *)> getSeconds);
  void findPrologues();
  void findEpilogues();
  void findWindows();
  double getMovedSeconds(const Collective &collective) const;
  unsigned getSourceEnd(const Collective &collective) const;
  unsigned getEndOfSources(const Collective &collective) const;
  unsigned getBeginOfReaders(const Collective &collective) const;
  Collective *findNextEarly(ArrayRef<bool> placed);
  void placeReductions(const ScheduleLimits &limits);
  void placeGathers(const ScheduleLimits &limits);
  unsigned limitByMemory(const Collective &collective, unsigned from, unsigned to, bool downwards, int64_t bytes) const;
  void addBytes(unsigned from, unsigned to, int64_t bytes);
  /// The starts and waits of each slot, in order.
  SmallVector<SmallVector<Event>> orderEvents() const;

  const CommandGraph &graph;
  ArrayRef<int64_t> live;
  SmallVector<Collective> collectives; // in the order of their channels
  SmallVector<Role> roles;             // by command
  SmallVector<unsigned> homes;         // by command: of prologues, epilogues and collectives
  SmallVector<unsigned> fixed;         // commands, by slot
  SmallVector<unsigned> slots;         // by command: number of fixed commands before it
  SmallVector<double> seconds;         // by command
  SmallVector<double> time;            // by slot: compute before it
  SmallVector<int64_t> extra;          // by slot: bytes that moved collectives add
};

} // namespace mlir::fsdp

#endif // FSDP_PLAN_BLOCKSCHEDULE_H
