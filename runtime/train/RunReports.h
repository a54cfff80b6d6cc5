//===- RunReports.h - Lines of a run at its start and end -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_RUNREPORTS_H
#define FSDPRT_TRAIN_RUNREPORTS_H

#include "train/Metrics.h"
#include "train/TrainingRun.h"
#include "train/Weights.h"
#include <optional>
#include <utility>

namespace fsdprt {

/// Reports the ranks, the parameters and the memory of a run. `random` is a text such as ", on
/// random data", or an empty text.
void announceSession(const TrainingRun &run, const std::string &random);
/// Reports the sources of the initial values of parameters, unless all initial values are random.
void announceWeights(const TrainingRun &run, const WeightSources &sources);

/// Measures by how many bytes the memory outside of the arenas grows after begin() was called.
class MemoryGrowth {
public:
  void begin(const TrainingRun &run);
  void report(const TrainingRun &run) const;

private:
  uint64_t onHost = 0; ///< private memory of this process in bytes, including arenas
  uint64_t onGpus = 0; ///< memory in use on GPUs in bytes, without arenas
};

struct StepCost {
  double seconds = 0, cpuSeconds = 0; ///< seconds: wall time; CPU time of all processes
  uint64_t tokens = 0;
  uint64_t exchanged[5] = {}; ///< bytes by type of collective, as in fsdprt_session_info
  /// Result of SaveStalls::take() after the step, in seconds.
  std::optional<double> saveStall;
};

/// Writes the metrics of step `number`, whose step block is `block`. `validation` points to the
/// validation loss, or is null if no validation followed the step.
void writeMetrics(Metrics &metrics, const TrainingRun &run, uint64_t number, const float *block,
                  const StepCost &cost, const double *validation);

void summarise(const TrainingRun &run, const StepCost &cost, double firstLoss, double lastLoss);

/// Measures for how long the steps are delayed by saves.
class SaveStalls {
public:
  /// Adds a save that delayed the next step by `seconds`.
  void add(double seconds, bool isAsync);
  /// Adds `seconds` to the delay of the save that was added last.
  void extend(double seconds);
  /// Returns for how many seconds saves have delayed steps since the last call of take(). Returns
  /// nothing if no save was added since that call.
  std::optional<double> take() { return std::exchange(untaken, std::nullopt); }
  /// Reports for how long saves delayed the steps. Counts only saves that were written while the
  /// steps continued. `stepSeconds` is the total time of all steps.
  void report(const TrainingRun &run, double stepSeconds) const;

private:
  uint64_t saves = 0; ///< number of saves that were written while the steps continued
  double sum = 0, last = 0, most = 0;
  bool isAsync = false; ///< argument `isAsync` of the last call of add()
  std::optional<double> untaken;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_RUNREPORTS_H
