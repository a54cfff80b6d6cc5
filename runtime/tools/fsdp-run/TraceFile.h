//===- TraceFile.h - A run on a timeline ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For ui.perfetto.dev and chrome://tracing.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_TRACEFILE_H
#define FSDP_RUN_TRACEFILE_H

#include "train/TrainingObserver.h"
#include <vector>

namespace fsdprt {

/// Writes the trace of the last steps to --trace, and reports how much of the collectives was
/// overlapped.
class TraceReport final : public TrainingObserver {
public:
  void afterTraining(const TrainingRun &run) override;
};

/// Writes one step of rank 0 that was simulated, from time 0 on.
void writeTrace(const std::string &path, std::vector<fsdprt_trace_event> events,
                RunReporter &printer);

} // namespace fsdprt

#endif // FSDP_RUN_TRACEFILE_H
