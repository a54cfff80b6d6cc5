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
  /// Seconds of a compute event. For a start, the seconds of the transfer if no other transfer uses
  /// the same links.
  double seconds = 0;
  /// For a start or a wait, `collective` is the index of the transfer (a collective or a copy).
  /// `channel` and `links` are set only for a start. Transfers of the same channel run one after
  /// another. Channels with equal `links` share the bandwidth of these links equally.
  unsigned collective = 0, channel = 0, links = 0;
  /// For a compute event, the parts of `seconds` on the multiprocessors and for memory traffic, of
  /// which the longer one counts (fsdpcommon/KernelTime.h).
  double busySeconds = 0, memorySeconds = 0;
  /// For a start, the multiprocessors that the transfer occupies from its beginning to its end.
  uint64_t multiprocessors = 0;
};

struct Timeline {
  double seconds = 0, computeSeconds = 0;
  /// Seconds by which compute events last longer, because transfers occupy multiprocessors.
  double slowedSeconds = 0;
  /// These vectors have one element for each transfer. The wait for the transfer stalls the rank
  /// for `exposed` seconds. The transfer begins at the time `begin` and ends at the time `end`.
  llvm::SmallVector<double> exposed, begin, end;
  /// Time at which each event begins.
  llvm::SmallVector<double> moments;
};

/// Simulates `events` from time 0. For every start, `events` must contain a wait. The device has
/// `multiprocessors` multiprocessors; if it is 0, transfers occupy none.
Timeline simulate(llvm::ArrayRef<TimelineEvent> events, unsigned collectives,
                  uint64_t multiprocessors = 0);

/// A transfer of `seconds` seconds on the links. `head` seconds of compute must precede the
/// transfer, and `tail` seconds of compute must follow it.
struct LinkJob {
  double head, seconds, tail;
};

/// Returns a lower bound, in seconds, of the duration of every schedule with unlimited memory. The
/// bound is the larger of two numbers: the compute time, and the makespan of the jobs under
/// Jackson's preemptive rule. At any time, this rule runs the job with the largest tail among the
/// jobs that are ready. On a single machine, this rule leads to the shortest makespan.
double getLowerBound(double computeSeconds, llvm::ArrayRef<LinkJob> jobs);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_TIMELINE_H
