//===- TraceFile.h - Timeline of a run --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes traces as JSON for ui.perfetto.dev and chrome://tracing.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_TRACEFILE_H
#define FSDP_RUN_TRACEFILE_H

#include "train/TrainingObserver.h"
#include <vector>

namespace fsdprt {

/// Implements --trace. Writes a trace of the last steps. Prints the percentage of the time of
/// collectives in which the rank executes other commands.
class TraceReport final : public TrainingObserver {
public:
  void afterTraining(const TrainingRun &run) override;
};

/// Writes the trace of rank 0 for one simulated step. The step begins at time 0.
void writeTrace(const std::string &path, std::vector<fsdprt_trace_event> events,
                RunReporter &printer);

} // namespace fsdprt

#endif // FSDP_RUN_TRACEFILE_H
