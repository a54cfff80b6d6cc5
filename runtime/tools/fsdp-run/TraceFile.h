//===- TraceFile.h - Timeline of a run --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes timelines as JSON for ui.perfetto.dev and chrome://tracing.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_TRACEFILE_H
#define FSDP_RUN_TRACEFILE_H

#include "train/TrainingObserver.h"
#include <vector>

namespace fsdprt {

/// Implements --trace: writes a timeline of the last steps, and prints which part of the
/// collectives is overlapped.
class TraceReport final : public TrainingObserver {
public:
  void afterTraining(const TrainingRun &run) override;
};

/// Writes the timeline of one simulated step of rank 0, which begins at time 0.
void writeTrace(const std::string &path, std::vector<fsdprt_trace_event> events,
                RunReporter &printer);

} // namespace fsdprt

#endif // FSDP_RUN_TRACEFILE_H
