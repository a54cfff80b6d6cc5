//===- Schedule.h - What a schedule hides -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_SCHEDULE_H
#define FSDP_ANALYSIS_SCHEDULE_H

#include "fsdp/IR/FSDP.h"
#include "llvm/Support/JSON.h"

namespace mlir::fsdp {

/// Channels of a scheduled program: of gathers and reductions, of copies to the device and to the
/// host, and of those from a rank's file and to it.
inline constexpr int64_t gatherChannel = 1, reduceChannel = 2, toDeviceChannel = 3,
                         toHostChannel = 4, fromFileChannel = 5, toFileChannel = 6;
/// Channels of the same number share their links; others have links of their own.
inline unsigned getLinks(int64_t channel) {
  return (channel > reduceChannel) + (channel > toHostChannel);
}

/// Of a scheduled collective or copy: its estimated seconds alone, those that a wait for it stalls,
/// and what stopped it from starting earlier or ending later: "source", "first use", "beginning",
/// "prefetch" or "memory".
inline constexpr StringLiteral secondsAttr = "fsdp.seconds", exposedAttr = "fsdp.exposed",
                               limitAttr = "fsdp.limit";
/// Of a scheduled program: {cluster, compute, unscheduled, scheduled, bound}, in seconds of one
/// run.
inline constexpr StringLiteral scheduleAttr = "fsdp.schedule";

/// Whether collectives may be one launch: of one kind over the same axes.
bool canStartTogether(CollectiveOp a, CollectiveOp b);
/// Whether a collective on a channel stands directly after one that may start with it: one launch
/// starts both.
bool startsWithPrevious(CollectiveOp collective);

/// A collective or a copy that is not hidden.
struct ExposedReport {
  Operation *op;
  double seconds = 0, exposed = 0; // of all iterations
  StringRef limit;
};

struct ScheduleReport {
  bool isScheduled = false;
  StringRef cluster;
  /// Estimated seconds: of the compute; of all commands one after another; as scheduled; of what
  /// no schedule can beat.
  double compute = 0, unscheduled = 0, scheduled = 0, bound = 0;
  /// Collectives in the step and the launches that start them, copies on channels, and those of
  /// both that stall it, longest first.
  int64_t collectives = 0, launches = 0, copies = 0;
  SmallVector<ExposedReport> exposed;

  double getExposed() const { return scheduled - compute; }
};

/// Of the program `step`.
ScheduleReport measureSchedule(ModuleOp planned);
void writeSchedule(const ScheduleReport &report, raw_ostream &os);
void writeSchedule(const ScheduleReport &report, llvm::json::OStream &json);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_SCHEDULE_H
