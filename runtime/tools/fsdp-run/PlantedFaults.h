//===- PlantedFaults.h - Injected faults ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements --inject-fault, --inject-rank-fault and --only-kinds, which are for tests.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_PLANTEDFAULTS_H
#define FSDP_RUN_PLANTEDFAULTS_H

#include "Options.h"
#include "testing/faults/FaultInjection.h"
#include "train/TrainingObserver.h"

namespace fsdprt {

class PlantedFaults final : public TrainingObserver {
public:
  explicit PlantedFaults(const Options &options);
  void beforeSession(const TrainingRun &run, fsdprt_session_options &wanted) override;
  void beforeTraining(const TrainingRun &run) override;
  void beforeStep(const TrainingRun &run) override;
  void afterStep(const TrainingRun &run) override;
  void duringSave(const TrainingRun &run) override;

private:
  void chooseElement(const TrainingRun &run);
  bool hasElement(const TrainingRun &run) const {
    return fault == Options::Fault::skipShardElement && faultRank >= run.firstRank &&
           faultRank < run.lastRank;
  }

  Options::Fault fault;
  InjectedFaults faults;
  RankFault rankFault;
  uint32_t faultRank = 0; ///< rank that has the element whose update is undone after each step
  uint64_t faultParam = 0;
  std::byte savedElement[8] = {};
};

} // namespace fsdprt

#endif // FSDP_RUN_PLANTEDFAULTS_H
