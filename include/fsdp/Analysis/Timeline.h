//===- Timeline.h - What overlaps with what ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   compute  | C0 |S| C1      |W..| C2 |       S starts, W waits: what is dotted is exposed
//   channel        |==========  ==|
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_TIMELINE_H
#define FSDP_ANALYSIS_TIMELINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::fsdp {

/// One thing that the rank's line of commands does.
struct TimelineEvent {
  enum class Kind { compute, start, wait } kind;
  /// Of a compute: how long it takes. Of a start: how long the transfer takes alone on its links.
  double seconds = 0;
  /// Of a start and a wait: the number of the transfer, a collective or a copy. Of a start:
  /// transfers of one channel go one after another; those of different channels share in equal
  /// parts the links that they have in common.
  unsigned collective = 0, channel = 0, links = 0;
};

struct Timeline {
  double seconds = 0, computeSeconds = 0;
  /// By collective: how long its wait stalled the line; when it began and ended.
  llvm::SmallVector<double> exposed, begin, end;
  /// When each event began.
  llvm::SmallVector<double> moments;
};

/// Runs `events` from time 0 on. Every start has its wait.
Timeline simulate(llvm::ArrayRef<TimelineEvent> events, unsigned collectives);

/// A collective as work for the links: `head` seconds of compute must come before it, `tail` after
/// it.
struct LinkJob {
  double head, seconds, tail;
};

/// Seconds that no order of starts and waits can beat, whatever the memory: the compute, or the
/// links busy with the work of largest tail that is ready (Jackson's preemptive rule, which is
/// optimal for one machine).
double getLowerBound(double computeSeconds, llvm::ArrayRef<LinkJob> jobs);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_TIMELINE_H
