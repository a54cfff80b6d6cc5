//===- TrainingRun.h - Shared state of a training run -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_TRAININGRUN_H
#define FSDPRT_TRAIN_TRAININGRUN_H

#include "io/InputFile.h"
#include "train/Handles.h"
#include "train/RunReporter.h"
#include "train/TrainingOptions.h"

namespace fsdprt {

struct TrainingRun {
  /// The options of the user. An option that the user has not given may come from the save.
  TrainingOptions options;
  fsdprt_artifact *artifact = nullptr;
  RunReporter &reporter;
  fsdprt_artifact_info info = {};
  SessionHandle session = {}; ///< the session; null until it is created
  /// this process has the ranks [firstRank, lastRank)
  uint32_t ranks = 0, firstRank = 0, lastRank = 0;
  uint32_t processes = 1;
  bool isRoot = true; ///< true if this process has rank 0
  /// true if the sharded and the unsharded program have different results
  bool differs = false;
  /// `stepsBefore` steps were completed before this run; `stepsDone` includes these steps
  uint64_t stepsBefore = 0, stepsDone = 0;

  /// Returns the sizes and the counters of `session` at the time of the call.
  fsdprt_session_info measure() const;
  /// Sets the learning rate in the step block of `rank`. `rank` may be FSDPRT_REFERENCE.
  void setRate(uint32_t rank, float lr) const;
  /// If ranks compare only parts of `file`, reports its name.
  void announceComparison(const InputFile &file) const;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAININGRUN_H
