//===- TrainingRun.h - Shared state of a training run -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A run's session and the ranks of this process, for the trainer's classes and for observers.
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
  TrainingOptions options; ///< user's options, completed by values of the save
  fsdprt_artifact *artifact = nullptr;
  RunReporter &reporter;
  fsdprt_artifact_info info = {};
  SessionHandle session = {};                      ///< null before the session is created
  uint32_t ranks = 0, firstRank = 0, lastRank = 0; ///< this process has ranks [firstRank, lastRank)
  uint32_t processes = 1;
  bool isRoot = true;                      ///< this process has rank 0
  bool differs = false;                    ///< results differ from the unsharded program's
  uint64_t stepsBefore = 0, stepsDone = 0; ///< steps before the resumed save; all completed steps

  /// Returns the session's current sizes and counters.
  fsdprt_session_info measure() const;
  /// Sets the learning rate in the step block of `rank`, or of FSDPRT_REFERENCE.
  void setRate(uint32_t rank, float lr) const;
  /// Reports `file` if ranks compare only a part of it.
  void announceComparison(const InputFile &file) const;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAININGRUN_H
