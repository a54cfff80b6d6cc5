//===- ScheduleSolver.h - Places for the transfers of a block ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chooses where the transfers of a problem start and are waited for: between its fixed commands,
// which keep their order. What merely prepares a gather, or takes up a reduction or what came to
// the host, moves with it.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_SCHEDULE_SCHEDULESOLVER_H
#define FSDP_PLAN_SCHEDULE_SCHEDULESOLVER_H

#include "fsdp/Analysis/ScheduleProblem.h"
#include "fsdp/Analysis/Timeline.h"
#include "llvm/ADT/StringRef.h"

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

class ScheduleSolver {
public:
  /// Of a problem that was derived, and that outlives this.
  explicit ScheduleSolver(const ScheduleProblem &problem);

  /// Chooses the places. Repeatable.
  void place(const ScheduleLimits &limits);
  /// Returns all commands in the order that the places make.
  llvm::SmallVector<ScheduleEvent> getOrder() const;
  /// Returns what then happens, when the links are `slower` times slower than estimated.
  Timeline simulate(double slower = 1) const;
  /// Returns seconds that no places can beat.
  double getLowerBound() const;
  /// Returns the most bytes alive.
  int64_t getPeak() const;
  /// Returns the seconds of a transfer in its launch, those of them that stall `line`, and what
  /// stopped it from starting earlier or ending later.
  double getSeconds(unsigned transfer) const { return getSeconds(transfers[transfer]); }
  double getExposed(unsigned transfer, const Timeline &line) const;
  llvm::StringRef getLimit(unsigned transfer) const { return transfers[transfer].limit; }

private:
  static constexpr unsigned none = ScheduleProblem::none;
  struct Transfer : ScheduleProblem::Transfer {
    explicit Transfer(const ScheduleProblem::Transfer &transfer)
        : ScheduleProblem::Transfer(transfer) {}
    bool isPlaced = false;
    unsigned start = 0, wait = 0; ///< slots: slot k is before fixed command k
    bool joins = false;           ///< is one launch with the one that starts before it
    unsigned bucket =
        none; ///< the transfer that its start is beside, and that is waited for with it
    llvm::StringRef limit;
  };
  using Event = ScheduleEvent;
  unsigned getEnd(const Transfer &transfer) const;
  unsigned getEndOfSources(const Transfer &transfer) const;
  unsigned getBeginOfReaders(const Transfer &transfer) const;
  Transfer *findNextEarly();
  void placeEarly(const ScheduleLimits &limits);
  void placeLate(const ScheduleLimits &limits);
  void placeLate(Transfer &transfer, llvm::ArrayRef<Transfer *> before, double &next,
                 const ScheduleLimits &limits);
  unsigned limitByFile(const Transfer &transfer, unsigned latest) const;
  unsigned limitByMemory(const Transfer &transfer, unsigned from, unsigned to, bool downwards,
                         int64_t bytes) const;
  void addBytes(unsigned from, unsigned to, int64_t bytes);
  void formBuckets(const ScheduleLimits &limits);
  void markLaunches();
  bool isAlike(const Transfer &a, const Transfer &b) const;
  bool needs(const Transfer &transfer, const Transfer &other) const;
  bool followsTransfers(const Transfer &transfer) const;
  bool joinGather(Transfer &transfer, const Transfer &first, const ScheduleLimits &limits);
  bool joinReduction(Transfer &transfer, const Transfer &last, const ScheduleLimits &limits);
  /// Those that start with `leader`, itself among them, in the order of their waits.
  llvm::SmallVector<unsigned> getBucket(unsigned leader) const;
  llvm::SmallVector<unsigned> getLaunch(const Event &event) const;
  double getSeconds(const Transfer &transfer) const;
  /// Returns the starts and waits of each slot, in order.
  llvm::SmallVector<llvm::SmallVector<Event>> orderEvents() const;

  const ScheduleProblem &problem;
  llvm::SmallVector<Transfer> transfers; ///< in the order of their channels
  llvm::SmallVector<int64_t> extra;      ///< by slot: bytes that moved transfers add
};

} // namespace mlir::fsdp

#endif // FSDP_PLAN_SCHEDULE_SCHEDULESOLVER_H
