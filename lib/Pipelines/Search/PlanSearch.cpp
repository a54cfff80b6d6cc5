//===- PlanSearch.cpp - Search for the fastest plan -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Branch and bound:
//
// 1. List the candidates (SearchSpace.cpp). Their bounds without any plan are 0.
// 2. Repeat rounds until the bounds exclude every candidate that is not planned. In a round, select
//    the groups with the least bounds, and plan them in child processes (GroupPlanner.cpp). Then
//    take their plans into account, in the order of the groups: the fastest plan that fits, and the
//    bounds that follow from each plan for all candidates (PlanProfile.cpp).
//    Rounds are over the groups of those axes `context` and `tensor` that are open (AxisPairs.cpp).
//    When the bounds exclude all of them, further axes are opened.
// 3. If no plan fits, search for the smallest arena in the same way.
//
// The first round of each pair of axes has one group, so that all others have bounds. The number of
// groups of a round is a constant, and a child process knows only the plans of earlier rounds.
// Hence, the result does not depend on the number of processors.
//
// Each plan is compared with the bounds that earlier plans gave it. If a plan is better than its
// bounds, these are wrong, and every candidate is planned.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Pipelines/PlanSearch.h"
#include "AxisPairs.h"
#include "ChildProcesses.h"
#include "GroupPlanner.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr size_t groupsPerRound = 4;

namespace {
class Search {
public:
  using AfterRound = llvm::function_ref<void(const SearchProgress &)>;
  Search(ModuleOp imported, const StepOptions &options, const Cluster &cluster,
         AfterRound afterRound);
  SearchResult run();

private:
  SmallVector<unsigned> selectGroups() const;
  void runRounds();
  void take(const PlannedCandidate &plan);
  void checkBounds(const PlannedCandidate &plan);
  SearchedPlan describe(unsigned number) const;
  SearchProgress getProgress() const;

  ModuleOp imported;
  const Cluster &cluster;
  AfterRound afterRound;
  std::vector<Candidate> candidates;
  AxisPairs pairs;
  std::vector<CandidateState> states;
  std::vector<SmallVector<unsigned>> groups; ///< members by group
  std::vector<std::optional<PlannedCandidate>> plans;
  SearchGoal goal;
  SearchResult result;
  bool isFirstRound = true;
  llvm::SmallDenseSet<unsigned> retried; ///< groups whose process ended early
};
} // namespace

Search::Search(ModuleOp imported, const StepOptions &options, const Cluster &cluster,
               AfterRound afterRound)
    : imported(imported), cluster(cluster), afterRound(afterRound),
      candidates(listCandidates(options, cluster)), pairs(imported, candidates),
      plans(candidates.size()) {
  goal.limit = options.plan.memoryLimit;
  goal.all = options.driver.searchAll;
  for (auto [number, candidate] : llvm::enumerate(candidates)) {
    states.push_back({getStructure(imported, candidate), PlanBounds(), /*isDone=*/false});
    groups.resize(candidate.group + 1);
    groups[candidate.group].push_back(number);
  }
}

/// Returns the groups of the next round.
SmallVector<unsigned> Search::selectGroups() const {
  using Key = std::tuple<double, int64_t, unsigned>;
  std::vector<Key> open;
  for (auto [group, members] : llvm::enumerate(groups)) {
    if (pairs.of(members.front()).state != AxisPair::State::open)
      continue;
    std::optional<Key> least;
    for (unsigned member : members) {
      const CandidateState &state = states[member];
      Key key{goal.isSmallest ? 0 : state.bounds.seconds, state.bounds.bytes, group};
      if (!state.isDone && !goal.excludes(state.bounds) && (!least || key < *least))
        least = key;
    }
    if (least)
      open.push_back(*least);
  }
  llvm::sort(open);
  SmallVector<unsigned> chosen;
  llvm::SmallPtrSet<const AxisPair *, 4> unplanned;
  for (const Key &key : open) {
    unsigned group = std::get<2>(key);
    const AxisPair &pair = pairs.of(groups[group].front());
    if (chosen.size() < (isFirstRound ? 1 : groupsPerRound) &&
        (pair.isPlanned || unplanned.insert(&pair).second))
      chosen.push_back(group);
  }
  return chosen;
}

void Search::runRounds() {
  while (true) {
    SmallVector<unsigned> chosen = selectGroups();
    if (chosen.empty() && !pairs.open(goal.seconds, goal.all))
      return;
    if (chosen.empty())
      continue;
    isFirstRound = false;
    std::vector<std::function<void(llvm::raw_ostream &)>> tasks;
    std::vector<SmallVector<unsigned>> members;
    for (unsigned group : chosen) {
      members.push_back(groups[group]);
      llvm::erase_if(members.back(), [&](unsigned member) { return states[member].isDone; });
      GroupTask task{imported, candidates, members.back(), states, goal, cluster};
      tasks.push_back([task](llvm::raw_ostream &os) {
        planGroup(task, [&](const PlannedCandidate &plan) {
          os << plan.toJson() << "\n";
          os.flush();
        });
      });
    }
    std::vector<ChildOutput> outputs = runInChildren(tasks);
    for (auto [output, own] : llvm::zip_equal(outputs, members)) {
      SmallVector<StringRef> lines;
      StringRef(output.text).split(lines, '\n', -1, /*KeepEmpty=*/false);
      for (StringRef line : lines)
        if (llvm::Expected<llvm::json::Value> value = llvm::json::parse(line))
          take(PlannedCandidate::fromJson(*value->getAsObject()));
        else
          llvm::consumeError(value.takeError());
      // A child process that ended early has not planned its remaining candidates.
      if (lines.empty() && output.problem.empty())
        output.problem = "the process that plans it has returned no plan";
      // Their group is tried once more.
      if (!output.problem.empty() && retried.insert(candidates[own.front()].group).second)
        continue;
      for (unsigned member : own)
        if (!output.problem.empty() && !states[member].isDone) {
          PlannedCandidate plan;
          plan.candidate = member;
          plan.problem = output.problem;
          plan.isLost = true;
          take(plan);
        }
    }
    afterRound(getProgress());
  }
}

SearchProgress Search::getProgress() const {
  SearchProgress progress;
  progress.candidates = states.size();
  progress.seconds = goal.seconds;
  for (auto [number, state] : llvm::enumerate(states)) {
    progress.planned += state.isDone;
    progress.open += !state.isDone && !goal.excludes(state.bounds) &&
                     pairs.of(number).state != AxisPair::State::refused;
  }
  return progress;
}

void Search::take(const PlannedCandidate &plan) {
  checkBounds(plan);
  // If no schedule can fit, the bounds that follow from the plan exclude its candidate. If no
  // plan fits, the search for the smallest arena plans the candidate again.
  if (!plan.cannotFit) {
    states[plan.candidate].isDone = true;
    plans[plan.candidate] = plan;
  }
  goal.add(plan);
  AxisPair &pair = pairs.of(plan.candidate);
  pair.isPlanned = true;
  bool fits =
      plan.problem.empty() && !plan.cannotFit && (goal.limit == 0 || plan.bytes <= goal.limit);
  if (fits && (pair.seconds == 0 || plan.seconds < pair.seconds))
    pair.seconds = plan.seconds;
  if (plan.profile)
    for (auto [candidate, state] : llvm::zip_equal(candidates, states))
      state.bounds.raise(plan.profile->getBounds(candidate, state.structure, cluster));
}

void Search::checkBounds(const PlannedCandidate &plan) {
  static constexpr double tolerance = 1e-9;
  const PlanBounds &bounds = states[plan.candidate].bounds;
  if (!plan.problem.empty() ||
      (bounds.bytes <= plan.bytes && bounds.seconds <= plan.seconds * (1 + tolerance)))
    return;
  result.wrongBounds.push_back(
      llvm::join(candidates[plan.candidate].spelled, " ") + ": " + std::to_string(plan.seconds) +
      " s of at least " + std::to_string(bounds.seconds) + " s, " + std::to_string(plan.bytes) +
      " bytes of at least " + std::to_string(bounds.bytes) + " bytes");
  goal.all = true;
}

SearchedPlan Search::describe(unsigned number) const {
  using State = SearchedPlan::State;
  SearchedPlan searched;
  searched.spelled = candidates[number].spelled;
  searched.options = candidates[number].options;
  const PlanBounds &bounds = states[number].bounds;
  if (const std::optional<PlannedCandidate> &plan = plans[number]) {
    searched.state = plan->isLost            ? State::lost
                     : plan->problem.empty() ? State::planned
                                             : State::unplannable;
    searched.seconds = plan->seconds;
    searched.bytes = plan->bytes;
    searched.limit = plan->limit;
    searched.problem = plan->problem;
    return searched;
  }
  bool isTooLarge = goal.limit > 0 && bounds.bytes > goal.limit;
  const AxisPair &pair = pairs.of(number);
  searched.state = pair.state == AxisPair::State::refused ? State::refused
                   : isTooLarge                           ? State::tooLarge
                   : goal.excludes(bounds)                ? State::tooSlow
                                                          : State::untried;
  searched.problem = pair.problem;
  searched.seconds = bounds.seconds;
  searched.bytes = bounds.bytes;
  return searched;
}

SearchResult Search::run() {
  runRounds();
  if (goal.seconds == 0 && goal.limit > 0) {
    goal.isSmallest = isFirstRound = true;
    runRounds();
  }
  for (unsigned number = 0; number < candidates.size(); ++number)
    result.plans.push_back(describe(number));
  auto isFaster = [](const SearchedPlan &a, const SearchedPlan &b) {
    return std::pair(a.seconds, a.bytes) < std::pair(b.seconds, b.bytes);
  };
  for (auto [number, plan] : llvm::enumerate(result.plans)) {
    if (plan.state != SearchedPlan::State::planned)
      continue;
    if (plan.fits(goal.limit) && (!result.best || isFaster(plan, result.plans[*result.best])))
      result.best = number;
    if (!result.smallest || plan.bytes < result.plans[*result.smallest].bytes)
      result.smallest = number;
  }
  return std::move(result);
}

SearchResult fsdp::searchPlans(ModuleOp imported, const StepOptions &options,
                               const Cluster &cluster,
                               llvm::function_ref<void(const SearchProgress &)> afterRound) {
  return Search(imported, options, cluster, afterRound).run();
}
