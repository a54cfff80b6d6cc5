//===- ProfileTable.h - The profile of a run as a table ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For --profile.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_PROFILETABLE_H
#define FSDP_RUN_PROFILETABLE_H

#include "PeakRates.h"
#include "train/TrainingObserver.h"

namespace fsdprt {

/// Prints the profile of the steps after the first on rank 0: by kind, then by kernel, with the
/// floors of one rank's peaks where ranks compute on the CPU. The same numbers also go to
/// --profile-file as JSON.
class ProfileReport final : public TrainingObserver {
public:
  void beforeTraining(const TrainingRun &run) override;
  void afterTraining(const TrainingRun &run) override;

private:
  PeakRates peak; ///< 0: not known, and no floors
};

} // namespace fsdprt

#endif // FSDP_RUN_PROFILETABLE_H
