//===- PlanSearch.h - Search for the fastest plan ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans a step for many combinations of options, and ranks the plans by estimated time. Measures
// are those that --explain prints for the same options.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_PLANSEARCH_H
#define FSDP_PIPELINES_PLANSEARCH_H

#include "fsdp/Analysis/Cluster.h"
#include "fsdp/Options/Options.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {

/// A candidate of the search, and what is known about its plan.
struct SearchedPlan {
  enum class State {
    planned,     ///< `seconds`, `bytes` and `limit` are those of the plan
    tooLarge,    ///< the candidate was not planned, because its arena has at least `bytes` bytes
    tooSlow,     ///< the candidate was not planned, because its step takes at least `seconds`
    dropped,     ///< no further schedule was tried, because the first is slow and does not fit
    untried,     ///< the candidate was not planned, because fewer ranks on its axes are faster
    refused,     ///< the model cannot be split over the axes `context` and `tensor`: `problem`
    unplannable, ///< a stage failed: `problem`
    lost,        ///< the process that plans the candidate ended early, twice: `problem`
  };
  State state = State::planned;
  /// Options as the command line spells them, without those that have their default value.
  std::vector<std::string> spelled;
  StepOptions options;
  double seconds = 0;
  int64_t bytes = 0;
  /// What limits the time of the step: compute, links, memory or host link.
  std::string limit;
  std::string problem;

  bool fits(int64_t limitBytes) const {
    return state == State::planned && (limitBytes == 0 || bytes <= limitBytes);
  }
};

struct SearchResult {
  /// Candidates in the order of the search space.
  std::vector<SearchedPlan> plans;
  /// Index of the fastest plan that fits. Nothing if no plan fits.
  std::optional<unsigned> best;
  /// Index of the plan with the smallest arena, if no plan fits.
  std::optional<unsigned> smallest;
  /// Descriptions of plans that are better than a bound for them. This is an internal error, after
  /// which the search has planned every candidate.
  std::vector<std::string> wrongBounds;
};

/// The state of a search before a candidate is planned.
struct SearchProgress {
  enum class Phase {
    comparing, ///< plan one group for each pair of axes that may have the fastest plan
    proving,   ///< plan what the bounds do not exclude
    shrinking, ///< no plan fits: search for the smallest arena
  };
  Phase phase = Phase::comparing;
  size_t candidates = 0, planned = 0;
  /// Candidates that are not planned, because of their arena, time, or axes that are not possible.
  size_t tooLarge = 0, tooSlow = 0, refused = 0;
  size_t dropped = 0; ///< candidates whose first schedule is slow and does not fit
  size_t open = 0;    ///< candidates of the axes tried that may still be the best
  size_t waiting = 0; ///< candidates of axes that are tried only if others are not faster
  double seconds = 0; ///< step time of the fastest plan that fits, or 0
};

/// Returns whether a mesh that the search tries has several ranks on the axis `context` or
/// `tensor`.
bool searchHasAxis(const StepOptions &options, const Cluster &cluster, llvm::StringRef axis);

/// Searches for the fastest plan of `options.driver.search` ranks. `imported` is the module after
/// the phase import. With --search-all, plans every candidate. Candidates are planned by child
/// processes, as many at a time as the machine has processors. The result does not depend on their
/// number. Calls `beforePlan` before the search waits for a plan.
SearchResult searchPlans(ModuleOp imported, const StepOptions &options, const Cluster &cluster,
                         llvm::function_ref<void(const SearchProgress &)> beforePlan);

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_PLANSEARCH_H
