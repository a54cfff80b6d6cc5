//===- GroupPlanner.h - Plans of a group of candidates ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_SEARCH_GROUPPLANNER_H
#define FSDP_PIPELINES_SEARCH_GROUPPLANNER_H

#include "PlanProfile.h"
#include "fsdp/Pipelines/Compiler.h"

namespace mlir::fsdp {

/// The plan of a candidate.
struct PlannedCandidate {
  unsigned candidate = 0;
  double seconds = 0;
  int64_t bytes = 0;
  std::string limit, problem; ///< `problem` is the first error if there is no plan
  /// Whether the process that plans the candidate ended early.
  bool isLost = false;
  /// Whether the model cannot be split over the axes `context` and `tensor`.
  bool isRefused = false;
  /// Whether no schedule can fit, so that the measures are not those of the smallest one.
  bool cannotFit = false;
  /// Time of the first schedule if it does not fit, or 0.
  double firstSeconds = 0;
  /// Profile of the first schedule.
  std::optional<PlanProfile> profile;

  /// Returns whether the first schedule does not fit, and is so slow that those with less memory
  /// are not tried, because they start transfers later.
  bool isTooSlow(double fastest) const {
    return fastest > 0 && firstSeconds > fastest * mostSlowdown;
  }

  llvm::json::Value toJson() const;
  static PlannedCandidate fromJson(const llvm::json::Object &object);

private:
  /// Largest ratio to the time of the fastest plan with which other schedules are tried.
  static constexpr double mostSlowdown = 1.02;
};

/// What the search knows about a candidate.
struct CandidateState {
  PlanStructure structure;
  PlanBounds bounds;
  bool isDone = false;
  bool isDropped = false; ///< whether the first schedule is too slow (PlannedCandidate::isTooSlow)
  bool isAllowed = false; ///< whether the model can be split over the axes `context` and `tensor`
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

/// What planners of all groups share. The members must outlive the planners.
struct PlannerInput {
  ModuleOp imported;
  const std::vector<Candidate> &candidates;
  const std::vector<CandidateState> &states;
  const Cluster &cluster;
};

/// Plans candidates of one group. The plan of a candidate depends on the members `limit`,
/// `isSmallest` and `all` of the goal only, and not on what the planner has planned before. If the
/// first schedule of the candidate is too slow, only `firstSeconds` and the profile depend on them.
class GroupPlanner {
public:
  GroupPlanner(const PlannerInput &input, SearchGoal goal) : input(input), goal(goal) {}
  /// `fastest` is the time of the fastest plan so far, or 0.
  PlannedCandidate plan(unsigned number, double fastest);

private:
  void runFirstPhases(unsigned number);
  FailureOr<StepCompilation> begin(const Candidate &candidate);
  PlannedCandidate planFusedModule(unsigned number, double fastest);

  PlannerInput input;
  SearchGoal goal;
  OwningOpRef<ModuleOp> fused;        ///< module after the stage Fuse
  OwningOpRef<ModuleOp> buffers;      ///< module after the first part of the stage Plan
  std::vector<std::string> buffersOf; ///< options of `buffers`
  std::string refusal;                ///< why the model cannot be split over the axes
  std::string error;                  ///< the first error
  bool isBegun = false;
};

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_SEARCH_GROUPPLANNER_H
