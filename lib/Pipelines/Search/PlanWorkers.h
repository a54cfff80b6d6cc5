//===- PlanWorkers.h - Candidates planned ahead -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_SEARCH_PLANWORKERS_H
#define FSDP_PIPELINES_SEARCH_PLANWORKERS_H

#include "ChildProcesses.h"
#include "GroupPlanner.h"
#include <set>

namespace mlir::fsdp {

/// Plans candidates in child processes, one for each group.
class PlanWorkers {
public:
  explicit PlanWorkers(const PlannerInput &input) : input(input) {}

  /// Returns the plan of the first one of the candidates `wanted`. Other processes plan the next
  /// ones meanwhile, for later calls.
  PlannedCandidate plan(ArrayRef<unsigned> wanted, const SearchGoal &goal);
  /// Ends the processes of groups that are not needed.
  void endGroups(llvm::function_ref<bool(unsigned group)> isNeeded);

private:
  bool startNext(ArrayRef<unsigned> wanted, const SearchGoal &goal);
  void take(const ChildAnswer &answer);
  void fail(unsigned candidate, StringRef problem);

  PlannerInput input;
  ChildProcesses children;                     ///< by number of the group
  std::map<unsigned, PlannedCandidate> plans;  ///< plans that plan() has not returned yet
  std::set<unsigned> failed;                   ///< groups whose process ended early once
  std::map<unsigned, std::string> lost;        ///< groups whose process did so twice, and how
  std::optional<std::pair<bool, bool>> goalOf; ///< members of the goal on which `plans` depend
};

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_SEARCH_PLANWORKERS_H
