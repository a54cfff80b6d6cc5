//===- ProfileTable.h - Table of a run's profile ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Prints the output of --profile.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_PROFILETABLE_H
#define FSDP_RUN_PROFILETABLE_H

#include "PeakRates.h"
#include "train/TrainingObserver.h"

namespace fsdprt {

/// Prints the profile of the steps after the first on rank 0, by kind and then by kernel. On the
/// CPU it includes the floors from one rank's peak rates. Writes the same numbers to --profile-file
/// as JSON.
class ProfileReport final : public TrainingObserver {
public:
  void beforeTraining(const TrainingRun &run) override;
  void afterTraining(const TrainingRun &run) override;

private:
  PeakRates peak; ///< zeros if unknown; then there are no floors
};

} // namespace fsdprt

#endif // FSDP_RUN_PROFILETABLE_H
