//===- ScheduleSolver.h - Places for the transfers of a block ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chooses the slots in which transfers start and in which the program waits for transfers. A slot
// is a place between two fixed commands. Fixed commands keep their order. A command that only
// prepares the source of a gather moves together with the start of the gather. A command that only
// reads the result of a reduction, or of a copy to the host, moves together with the wait for this
// transfer.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_SCHEDULE_SCHEDULESOLVER_H
#define FSDP_PLAN_SCHEDULE_SCHEDULESOLVER_H

#include "fsdp/Analysis/ScheduleProblem.h"
#include "fsdp/Analysis/Timeline.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::fsdp {

struct ScheduleLimits {
  /// Maximum number of gathers, in the forward and in the backward, that may start before the wait
  /// for an earlier gather. The value -1 allows as many gathers as are needed to hide their time.
  int64_t forwardPrefetch = -1, backwardPrefetch = -1;
  /// Maximum number of late copies between the arenas of device and host that may start before the
  /// wait for an earlier late copy. The value -1 means that there is no limit.
  int64_t copyPrefetch = -1;
  /// Maximum total bytes of collectives that start as one launch. If 0, each collective starts
  /// alone.
  int64_t bucketBytes = 0;
  /// Maximum number of bytes alive at a command of this program. If 0, there is no limit.
  int64_t bytes = 0;
  /// Factor by which collectives are assumed to take longer than estimated.
  double slack = 1;
};

class ScheduleSolver {
public:
  /// derive() must have been called on `problem`, and `problem` must outlive the solver.
  explicit ScheduleSolver(const ScheduleProblem &problem);

  /// Chooses the slots of the starts and waits of all transfers. The function may be called again
  /// with other limits.
  void place(const ScheduleLimits &limits);
  /// Returns the commands, starts and waits in the order that the chosen slots define.
  llvm::SmallVector<ScheduleEvent> getOrder() const;
  /// Returns the timeline of the commands in the order of getOrder(). The links are assumed to be
  /// `slower` times slower than estimated.
  Timeline simulate(double slower = 1) const;
  /// Returns a lower bound, in seconds, of the block's duration for all choices of slots.
  double getLowerBound() const;
  /// Returns the largest number of bytes that are alive at a command.
  int64_t getPeak() const;
  /// Return properties of a transfer. The function getSeconds() returns the duration of the
  /// transfer. The duration includes the latency only if the transfer is the first of its launch.
  /// The function getExposed() returns for how many seconds of `line` commands wait for the
  /// transfer. The function getLimit() returns the reason why the transfer does not start earlier
  /// or end later.
  double getSeconds(unsigned transfer) const { return getSeconds(transfers[transfer]); }
  double getExposed(unsigned transfer, const Timeline &line) const;
  llvm::StringRef getLimit(unsigned transfer) const { return transfers[transfer].limit; }

private:
  static constexpr unsigned none = ScheduleProblem::none;
  struct Transfer : ScheduleProblem::Transfer {
    explicit Transfer(const ScheduleProblem::Transfer &transfer)
        : ScheduleProblem::Transfer(transfer) {}
    bool isPlaced = false;
    unsigned start = 0, wait = 0; ///< numbers of slots; slot k directly precedes fixed command k
    bool joins = false;           ///< true if the transfer continues the launch of another transfer
    unsigned bucket = none;       ///< index of the first transfer of the launch, or `none`
    llvm::StringRef limit;
  };
  using Event = ScheduleEvent;
  using KnownEnds = llvm::DenseMap<const Transfer *, unsigned>;
  unsigned getEnd(const Transfer &transfer, KnownEnds &known) const;
  unsigned getEndOfSources(const Transfer &transfer, KnownEnds &known) const;
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
  /// Returns `leader` and the transfers that start together with `leader`, in the order of the
  /// waits.
  llvm::SmallVector<unsigned> getBucket(unsigned leader) const;
  llvm::SmallVector<unsigned> getLaunch(const Event &event) const;
  double getSeconds(const Transfer &transfer) const;
  /// Returns the starts and waits of each slot, in order.
  llvm::SmallVector<llvm::SmallVector<Event>> orderEvents() const;

  const ScheduleProblem &problem;
  llvm::SmallVector<Transfer> transfers; ///< the transfers, in the order of the problem
  /// For each slot, the bytes that are alive in addition because transfers were moved.
  llvm::SmallVector<int64_t> extra;
};

} // namespace mlir::fsdp

#endif // FSDP_PLAN_SCHEDULE_SCHEDULESOLVER_H
