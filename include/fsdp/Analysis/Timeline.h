//===- Timeline.h - Simulated overlap of transfers --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   compute  | C0 |S| C1      |W..| C2 |       S starts, W waits; dots: exposed time
//   channel        |==========  ==|
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_TIMELINE_H
#define FSDP_ANALYSIS_TIMELINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::fsdp {

/// One event in the sequence of commands of a rank.
struct TimelineEvent {
  enum class Kind { compute, start, wait } kind;
  /// Seconds of a compute event. For a start: seconds of the transfer if it is alone on its links.
  double seconds = 0;
  /// For a start or a wait, `collective` is the index of the transfer (a collective or a copy).
  /// Only a start has `channel` and `links`. Transfers of one channel run one after another.
  /// Channels with equal `links` share the bandwidth equally.
  unsigned collective = 0, channel = 0, links = 0;
};

struct Timeline {
  double seconds = 0, computeSeconds = 0;
  /// For each transfer, the seconds for which its wait stalls, and the times of its begin and end.
  llvm::SmallVector<double> exposed, begin, end;
  /// Time at which each event begins.
  llvm::SmallVector<double> moments;
};

/// Simulates `events` from time 0. `events` must contain a wait for every start.
Timeline simulate(llvm::ArrayRef<TimelineEvent> events, unsigned collectives);

/// A transfer of `seconds` seconds on the links. `head` seconds of compute must precede the
/// transfer, and `tail` seconds of compute must follow it.
struct LinkJob {
  double head, seconds, tail;
};

/// Returns a lower bound, in seconds, of the duration of every schedule with unlimited memory. The
/// bound is the larger of the compute time and the makespan of the jobs under Jackson's preemptive
/// rule. This rule runs the ready job with the largest tail and is optimal for one machine.
double getLowerBound(double computeSeconds, llvm::ArrayRef<LinkJob> jobs);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_TIMELINE_H
