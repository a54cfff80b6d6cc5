//===- GroupPlanner.h - Plans of a group of candidates ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_SEARCH_GROUPPLANNER_H
#define FSDP_PIPELINES_SEARCH_GROUPPLANNER_H

#include "PlanProfile.h"

namespace mlir::fsdp {

/// The plan of a candidate.
struct PlannedCandidate {
  unsigned candidate = 0;
  double seconds = 0;
  int64_t bytes = 0;
  std::string limit, problem; ///< `problem` is the first error if there is no plan
  /// Whether no schedule can fit, so that the measures are not those of the smallest one.
  bool cannotFit = false;
  std::optional<PlanProfile> profile;

  llvm::json::Value toJson() const;
  static PlannedCandidate fromJson(const llvm::json::Object &object);
};

/// What the search knows about a candidate.
struct CandidateState {
  PlanStructure structure;
  PlanBounds bounds;
  bool isDone = false;
};

/// Decides which candidates still have to be planned.
struct SearchGoal {
  int64_t limit = 0;       ///< largest arena in bytes; 0 if there is no limit
  double seconds = 0;      ///< time of the fastest plan that fits; 0 if there is none
  bool isSmallest = false; ///< search for the smallest arena, because no plan fits
  int64_t bytes = 0;       ///< smallest arena of all plans; 0 if there is none
  bool all = false;        ///< plan every candidate

  /// Returns whether the bounds exclude the candidate.
  bool excludes(const PlanBounds &bounds) const;
  /// Takes a plan into account.
  void add(const PlannedCandidate &plan);
};

/// A task for a child process: the candidates of one group.
struct GroupTask {
  ModuleOp imported;
  const std::vector<Candidate> &candidates;
  SmallVector<unsigned> members;      ///< indices of the candidates to plan
  std::vector<CandidateState> states; ///< of all candidates
  SearchGoal goal;
  const Cluster &cluster;
};

/// Plans the members of a group that the goal does not exclude, beginning with the least bound of
/// the time. Calls `report` after each plan.
void planGroup(GroupTask task, llvm::function_ref<void(const PlannedCandidate &)> report);

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_SEARCH_GROUPPLANNER_H
