//===- Schedule.h - Measures of a schedule ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_SCHEDULE_H
#define FSDP_ANALYSIS_SCHEDULE_H

#include "fsdp/IR/FSDP.h"
#include "llvm/Support/JSON.h"

namespace mlir::fsdp {

/// Channels of a scheduled program. Channels 1 and 2 are for gathers and reductions. Channels 3 to
/// 6 are for copies to the device, to the host, from the rank's file, and to the rank's file, in
/// this order.
inline constexpr int64_t gatherChannel = 1, reduceChannel = 2, toDeviceChannel = 3,
                         toHostChannel = 4, fromFileChannel = 5, toFileChannel = 6;
/// Returns the index of the links that a channel uses. Channels with equal indices share links.
inline unsigned getLinks(int64_t channel) {
  return (channel > reduceChannel) + (channel > toHostChannel);
}

/// Attributes of a scheduled collective or copy. `secondsAttr` contains the seconds that the
/// transfer would take if no other transfer used the same links. `exposedAttr` contains the seconds
/// for which the wait for the transfer stalls the program. `limitAttr` contains the reason why the
/// transfer does not start earlier or end later, such as "source", "first use" or "memory".
inline constexpr StringLiteral secondsAttr = "fsdp.seconds", exposedAttr = "fsdp.exposed",
                               limitAttr = "fsdp.limit";
/// Attribute of a scheduled program. It is a dictionary {cluster, compute, unscheduled, scheduled,
/// bound}, and may have two more entries: `slowed`, more seconds, and the unit `copy_engines`, if
/// copy engines do all-gathers. The numbers in it are seconds of one execution of the program (see
/// ScheduleReport).
inline constexpr StringLiteral scheduleAttr = "fsdp.schedule";

/// Returns true if one launch may start both collectives, that is, if they have the same kind and
/// the same axes.
bool canStartTogether(CollectiveOp a, CollectiveOp b);
/// Returns true if the launch that starts the previous command also starts `collective`.
bool startsWithPrevious(CollectiveOp collective);

/// A collective or a copy whose wait stalls the program.
struct ExposedReport {
  Operation *op;
  double seconds = 0, exposed = 0; // seconds of the transfer and of the stall, summed over all
                                   // iterations
  StringRef limit;
};

struct ScheduleReport {
  bool isScheduled = false, copyEngines = false;
  StringRef cluster;
  /// Estimated seconds. `compute` is the sum over all commands that compute. `unscheduled` is the
  /// duration of the step if all commands run one after another. `scheduled` is the duration of the
  /// step with this schedule. `bound` is a lower bound of the duration with any schedule.
  double compute = 0, unscheduled = 0, scheduled = 0, bound = 0;
  /// Seconds of `scheduled` by which kernels last longer, because collectives occupy
  /// multiprocessors.
  double slowed = 0;
  /// The step has `collectives` collectives, which `launches` launches start, and `copies` copies
  /// on channels. `exposed` lists the collectives and copies that stall the step for more than 1 %
  /// of their own duration, longest stall first.
  int64_t collectives = 0, launches = 0, copies = 0;
  SmallVector<ExposedReport> exposed;

  double getExposed() const { return scheduled - compute - slowed; }
};

/// Returns true if the schedule of a program assumes that copy engines do all-gathers.
bool usesCopyEngines(ProgramOp program);
/// Measures the schedule of the program `step`.
ScheduleReport measureSchedule(ModuleOp planned);
void writeSchedule(const ScheduleReport &report, raw_ostream &os);
void writeSchedule(const ScheduleReport &report, llvm::json::OStream &json);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_SCHEDULE_H
