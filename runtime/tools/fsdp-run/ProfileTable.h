//===- ProfileTable.h - Table of a run's profile ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_PROFILETABLE_H
#define FSDP_RUN_PROFILETABLE_H

#include "PeakRates.h"
#include "train/TrainingObserver.h"

namespace fsdprt {

/// Prints the profile of rank 0. The profile covers all steps except the first. One table has a row
/// for each kind of kernel, and the other table has a row for each kernel. For ranks on a CPU, the
/// tables have a column that compares the measured times with the least times, which are computed
/// from the peak rates of a rank. Writes the same numbers as JSON to the file of --profile-file.
class ProfileReport final : public TrainingObserver {
public:
  void beforeTraining(const TrainingRun &run) override;
  void afterTraining(const TrainingRun &run) override;

private:
  PeakRates peak; ///< peak rates of a rank; all 0 if the rates are unknown
};

} // namespace fsdprt

#endif // FSDP_RUN_PROFILETABLE_H
