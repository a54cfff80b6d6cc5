//===- TrainingObserver.h - Observer of a training run ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     beforeSession
//     beforeTraining                          weights are loaded; the first validation follows
//       beforeSteps
//         beforeStep  afterStep  ..
//         beforeSave  duringSave  afterSave   when a save is due
//       afterSteps
//     afterTraining                           the last save is written
//     afterRun                                weights are exported; a run that ends early has none
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_TRAININGOBSERVER_H
#define FSDPRT_TRAIN_TRAININGOBSERVER_H

#include "train/TrainingRun.h"

namespace fsdprt {

/// Observer of a run. If a function of an observer throws Error, the run ends.
class TrainingObserver {
public:
  virtual ~TrainingObserver() = default;
  virtual void beforeSession(const TrainingRun &, fsdprt_session_options &) {}
  virtual void beforeTraining(const TrainingRun &) {}
  virtual void beforeSteps() {}
  virtual void beforeStep(const TrainingRun &) {}
  virtual void afterStep(const TrainingRun &) {}
  virtual void beforeSave() {}
  /// Called when the folder of a save exists, before this process writes its files to this folder.
  virtual void duringSave(const TrainingRun &) {}
  virtual void afterSave() {}
  virtual void afterSteps() {}
  virtual void afterTraining(const TrainingRun &) {}
  virtual void afterRun(const TrainingRun &) {}
  /// Called between steps. Returns the number of a signal if this signal requests that the run end,
  /// and otherwise 0.
  virtual int requestedEnd() const { return 0; }
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAININGOBSERVER_H
