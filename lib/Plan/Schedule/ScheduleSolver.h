//===- ScheduleSolver.h - Places for the transfers of a block ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chooses the slots, between fixed commands, in which transfers start and are waited for. Fixed
// commands keep their order. A command that only prepares a gather moves with the start of the
// gather. A command that only reads a result of a reduction or a copy to the host moves with the
// wait.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_SCHEDULE_SCHEDULESOLVER_H
#define FSDP_PLAN_SCHEDULE_SCHEDULESOLVER_H

#include "fsdp/Analysis/ScheduleProblem.h"
#include "fsdp/Analysis/Timeline.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::fsdp {

struct ScheduleLimits {
  /// Largest number of gathers of the forward and of the backward that may start before the wait
  /// for an earlier gather. -1 allows as many as are needed to hide them.
  int64_t forwardPrefetch = -1, backwardPrefetch = -1;
  /// Largest number of late copies between the arenas of device and host that may start before the
  /// wait for an earlier one, or -1.
  int64_t copyPrefetch = -1;
  /// Largest number of bytes of collectives that start as one launch. If 0, each starts alone.
  int64_t bucketBytes = 0;
  /// Largest number of bytes alive at a command of this program. If 0, there is no limit.
  int64_t bytes = 0;
  /// Factor by which collectives are assumed to take longer than estimated.
  double slack = 1;
};

class ScheduleSolver {
public:
  /// `problem` must be derived, and must outlive the solver.
  explicit ScheduleSolver(const ScheduleProblem &problem);

  /// Chooses the slots of all transfers. May be called again with other limits.
  void place(const ScheduleLimits &limits);
  /// Returns all commands in the order of the chosen slots.
  llvm::SmallVector<ScheduleEvent> getOrder() const;
  /// Returns the timeline of getOrder() if the links are `slower` times slower than estimated.
  Timeline simulate(double slower = 1) const;
  /// Returns a lower bound in seconds for any choice of slots.
  double getLowerBound() const;
  /// Returns the most bytes alive at a command.
  int64_t getPeak() const;
  /// Return three properties of a transfer: its seconds as part of its launch, the seconds for
  /// which it stalls `line`, and the reason why it does not start earlier or end later.
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
    bool joins = false;           ///< whether the transfer starts with the launch before it
    unsigned bucket = none;       ///< index of the first transfer of its launch
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
  /// Returns the transfers that start with `leader`, including itself, in the order of their waits.
  llvm::SmallVector<unsigned> getBucket(unsigned leader) const;
  llvm::SmallVector<unsigned> getLaunch(const Event &event) const;
  double getSeconds(const Transfer &transfer) const;
  /// Returns the starts and waits of each slot, in order.
  llvm::SmallVector<llvm::SmallVector<Event>> orderEvents() const;

  const ScheduleProblem &problem;
  llvm::SmallVector<Transfer> transfers; ///< transfers, sorted by channel
  llvm::SmallVector<int64_t> extra;      ///< bytes that moved transfers add, by slot
};

} // namespace mlir::fsdp

#endif // FSDP_PLAN_SCHEDULE_SCHEDULESOLVER_H
