//===- RunReports.h - Lines of a run at its start and end -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a run says of its ranks, memory and weights, and the metrics of a step.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_RUNREPORTS_H
#define FSDPRT_TRAIN_RUNREPORTS_H

#include "train/Metrics.h"
#include "train/TrainingRun.h"
#include "train/Weights.h"

namespace fsdprt {

/// Reports ranks, parameters and memory. `random`: ", on random data", or an empty text.
void announceSession(const TrainingRun &run, const std::string &random);
/// Reports which parameters start from where, unless all are drawn.
void announceWeights(const TrainingRun &run, const WeightSources &sources);

/// How memory beside the arenas grows after the first step.
class MemoryGrowth {
public:
  /// Is called after the first step.
  void begin(const TrainingRun &run);
  void report(const TrainingRun &run) const;

private:
  uint64_t onHost = 0; ///< bytes that no file backs, arenas included
  uint64_t onGpus = 0; ///< bytes of GPUs that no arena of this run has
};

/// What a step took.
struct StepCost {
  double seconds = 0, cpuSeconds = 0; ///< the latter of all processes
  uint64_t tokens = 0;
  uint64_t exchanged[4] = {}; ///< bytes of its collectives, by kind
};

/// Writes the metrics of step `number` with its step block. `validation`: a loss, or null.
void writeMetrics(Metrics &metrics, const TrainingRun &run, uint64_t number, const float *block,
                  const StepCost &cost, const double *validation);

/// Reports what all steps took: `cost` has their sums of seconds and tokens.
void summarise(const TrainingRun &run, const StepCost &cost, double firstLoss, double lastLoss);

} // namespace fsdprt

#endif // FSDPRT_TRAIN_RUNREPORTS_H
