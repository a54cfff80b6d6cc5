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
  /// Gathers of the forward and of the backward that may be started before an earlier one is waited
  /// for; -1: as many as hide them.
  int64_t forwardPrefetch = -1, backwardPrefetch = -1;
  /// The same of copies from the host's arena and to it that something waits for.
  int64_t copyPrefetch = -1;
  /// Bytes of collectives of one kind that may start as one; 0: each alone.
  int64_t bucketBytes = 0;
  /// Bytes that may be alive at a command, of this block's program; 0: no limit.
  int64_t bytes = 0;
  /// How much longer than estimated a collective is taken to be.
  double slack = 1;
};

/// Where the collectives of a block, and its copies between the arenas, start and end: between its
/// other commands, which keep their order but for those that merely prepare a gather, or take up a
/// reduction or what came to the host.
class BlockSchedule {
public:
  /// `getSeconds`: of a command, once; `getLatency`: of a collective without bytes; `live`: bytes
  /// of the device's arena alive at each command of the graph as it stands.
  BlockSchedule(const CommandGraph &graph, LayoutOp layout,
                llvm::function_ref<double(Operation *)> getSeconds,
                llvm::function_ref<double(CollectiveOp)> getLatency, ArrayRef<int64_t> live);

  /// Chooses the places. Repeatable.
  void place(const ScheduleLimits &limits);
  /// What then happens, in order, when the links are `slower` times slower than estimated.
  Timeline simulate(double slower = 1) const;
  /// Seconds of one command behind the other; of what no places can beat.
  double getUnscheduled() const;
  double getLowerBound() const;
  /// The most bytes alive.
  int64_t getPeak() const;
  /// The order of the program: each transfer is waited for where it starts.
  void applyInOrder(int64_t &nextId) const;
  /// Moves the commands, and gives transfers their channel, waits and the attributes of
  /// Analysis/Schedule.h. Copies get ids from `nextId` on.
  void apply(Block &block, int64_t &nextId) const;

private:
  static constexpr unsigned none = ~0u;
  enum class Role { fixed, transfer, prologue, epilogue };
  struct Transfer {
    unsigned command; // its number in the graph
    int64_t channel = 0;
    bool isLate = false; // starts as late as hides it: a gather, and a copy of what something needs
    bool isEarly = false; // ends as soon as it can: frees its source, or nothing here waits for it
    bool isBackward = false; // of a gather
    bool isPlaced = false;
    double seconds = 0, latency = 0;
    int64_t sentBytes = 0; // of a collective
    int64_t bytes =
        0; // of the device that live longer when it is moved: target of a late one, else source
    SmallVector<unsigned> prologue;    // commands that move with its start
    SmallVector<unsigned> epilogue;    // and with its wait
    unsigned earliest = 0, latest = 0; // slots that the fixed commands allow
    unsigned start = 0, wait = 0;      // slots that were chosen: slot k is before fixed command k
    bool joins = false;                // is one launch with the one that starts before it
    unsigned bucket =
        none; // the transfer that its start stands beside, and that is waited for with it
    StringRef limit;
  };
  struct Event {
    enum class Kind { start, wait } kind;
    unsigned transfer;
  };

  void findTransfers(LayoutOp layout, llvm::function_ref<double(Operation *)> getSeconds,
                     llvm::function_ref<double(CollectiveOp)> getLatency);
  std::optional<Transfer> describe(CollectiveOp op, unsigned number,
                                   llvm::DenseSet<Attribute> &gathered) const;
  std::optional<Transfer> describe(CopyOp op, unsigned number, LayoutOp layout,
                                   SymbolTableCollection &tables) const;
  void findPrologues();
  void findEpilogues();
  void findWindows();
  double getMovedSeconds(const Transfer &transfer) const;
  unsigned getSourceEnd(const Transfer &transfer) const;
  unsigned getEnd(const Transfer &transfer) const;
  unsigned getEndOfSources(const Transfer &transfer) const;
  unsigned getBeginOfReaders(const Transfer &transfer) const;
  Transfer *findNextEarly();
  void placeEarly(const ScheduleLimits &limits);
  void placeLate(const ScheduleLimits &limits);
  void placeLate(Transfer &transfer, ArrayRef<Transfer *> before, double &next,
                 const ScheduleLimits &limits);
  unsigned limitByFile(const Transfer &transfer, unsigned latest) const;
  unsigned limitByMemory(const Transfer &transfer, unsigned from, unsigned to, bool downwards,
                         int64_t bytes) const;
  void addBytes(unsigned from, unsigned to, int64_t bytes);
  void formBuckets(const ScheduleLimits &limits);
  void markLaunches();
  bool isAlike(const Transfer &a, const Transfer &b) const;
  bool needs(const Transfer &transfer, const Transfer &other) const;
  bool joinGather(Transfer &transfer, const Transfer &first, const ScheduleLimits &limits);
  bool joinReduction(Transfer &transfer, const Transfer &last, const ScheduleLimits &limits);
  /// Those that start with `leader`, itself among them, in the order of their waits.
  SmallVector<unsigned> getBucket(unsigned leader) const;
  SmallVector<unsigned> getLaunch(const Event &event) const;
  double getSeconds(const Transfer &transfer) const;
  Operation *startTransfer(const Transfer &transfer, double seconds, double exposed,
                           StringRef limit, int64_t &nextId) const;
  double getExposed(const Transfer &transfer, const Timeline &line) const;
  /// The starts and waits of each slot, in order.
  SmallVector<SmallVector<Event>> orderEvents() const;

  const CommandGraph &graph;
  ArrayRef<int64_t> live;
  SmallVector<Transfer> transfers; // in the order of their channels
  SmallVector<Role> roles;         // by command
  SmallVector<unsigned> homes;     // by command: of prologues, epilogues and transfers
  SmallVector<unsigned> fixed;     // commands, by slot
  SmallVector<unsigned> slots;     // by command: number of fixed commands before it
  SmallVector<double> seconds;     // by command
  SmallVector<double> time;        // by slot: compute before it
  SmallVector<int64_t> extra;      // by slot: bytes that moved transfers add
};

} // namespace mlir::fsdp

#endif // FSDP_PLAN_BLOCKSCHEDULE_H
