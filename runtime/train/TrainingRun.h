//===- TrainingRun.h - What the parts of a run share ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The session of a run with its place among the processes, for the parts of the trainer and for
// observers.
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
  TrainingOptions options; ///< with what a save has where the user gave nothing
  fsdprt_artifact *artifact = nullptr;
  RunReporter &reporter;
  fsdprt_artifact_info info = {};
  SessionHandle session = {};                      ///< null before it is made
  uint32_t ranks = 0, firstRank = 0, lastRank = 0; ///< this process has ranks [firstRank, lastRank)
  uint32_t processes = 1;
  bool isRoot = true;                      ///< it has rank 0
  bool differs = false;                    ///< from the unsharded program, in any process
  uint64_t stepsBefore = 0, stepsDone = 0; ///< of the save it goes on from; with those done here

  /// Returns what the session has used so far.
  fsdprt_session_info measure() const;
  /// Sets the learning rate in the step block of `rank`, or of FSDPRT_REFERENCE.
  void setRate(uint32_t rank, float lr) const;
  /// Reports that ranks have compared only a part of `file`, if that is so.
  void announceComparison(const InputFile &file) const;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAININGRUN_H
