//===- TrainingRun.h - Shared state of a training run -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines the options, artifact, session and ranks of a run, which other classes and observers use.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_TRAININGRUN_H
#define FSDPRT_TRAIN_TRAININGRUN_H

#include "io/InputFile.h"
#include "train/Handles.h"
#include "train/RunReporter.h"
#include "train/TrainingOptions.h"

namespace fsdprt {

struct TrainingRun {
  TrainingOptions options; ///< options of the user; otherwise values of the save
  fsdprt_artifact *artifact = nullptr;
  RunReporter &reporter;
  fsdprt_artifact_info info = {};
  SessionHandle session = {};                      ///< null before the session is created
  uint32_t ranks = 0, firstRank = 0, lastRank = 0; ///< the process has ranks [firstRank, lastRank)
  uint32_t processes = 1;
  bool isRoot = true;                      ///< true if this process has rank 0
  bool differs = false;                    ///< true if results differ from the unsharded program's
  uint64_t stepsBefore = 0, stepsDone = 0; ///< completed steps: before this run; in total

  /// Returns the current sizes and counters of `session`.
  fsdprt_session_info measure() const;
  /// Sets the learning rate in the step block of `rank`, or of FSDPRT_REFERENCE.
  void setRate(uint32_t rank, float lr) const;
  /// Reports the name of `file` if ranks compare only parts of it.
  void announceComparison(const InputFile &file) const;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAININGRUN_H
