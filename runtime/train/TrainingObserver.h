//===- TrainingObserver.h - What is told of the course of a run -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// beforeSession
//     beforeTraining                          weights are in place; before a first validation
//       beforeSteps
//         beforeStep  afterStep  ..
//         beforeSave  duringSave  afterSave   where a save is due
//       afterSteps
//     afterTraining                           the last save is written
//     afterRun                                weights are exported; only of a run that reached its
//     end
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_TRAININGOBSERVER_H
#define FSDPRT_TRAIN_TRAININGOBSERVER_H

#include "train/TrainingRun.h"

namespace fsdprt {

/// Any of its methods may throw Error, which ends the run.
class TrainingObserver {
public:
  virtual ~TrainingObserver() = default;
  virtual void beforeSession(const TrainingRun &, fsdprt_session_options &) {}
  virtual void beforeTraining(const TrainingRun &) {}
  virtual void beforeSteps() {}
  virtual void beforeStep(const TrainingRun &) {}
  virtual void afterStep(const TrainingRun &) {}
  virtual void beforeSave() {}
  /// Is called when the folder is there, and before the files of this process are written.
  virtual void duringSave(const TrainingRun &) {}
  virtual void afterSave() {}
  virtual void afterSteps() {}
  virtual void afterTraining(const TrainingRun &) {}
  virtual void afterRun(const TrainingRun &) {}
  /// Returns the signal that asks for the end of the run, or 0. Is asked between steps.
  virtual int requestedEnd() const { return 0; }
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAININGOBSERVER_H
