//===- PlanSearch.cpp - Search for the fastest plan -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Branch and bound:
//
// 1. List the candidates (SearchSpace.cpp). Their bounds without any plan are 0.
// 2. Repeat until the bounds exclude every candidate that is not planned: plan the candidate that
//    is the first in the order of getKey(), with the least bound (GroupPlanner.cpp). Take its plan
//    into account: the fastest plan that fits, and the bounds that follow from the plan for all
//    candidates (PlanProfile.cpp). Other processors plan the next candidates of the order ahead
//    (PlanWorkers.cpp). Their plans are used only if they become the first.
//    Candidates are those of the axes `context` and `tensor` that are open (AxisPairs.cpp). If one
//    group of each of them is planned, further axes are opened if they may be faster. The groups of
//    these are next, so that a fast plan is known before the other groups are planned.
// 3. If no plan fits, search for the smallest arena in the same way.
//
// The first group of a pair gathers parameters again if it can, because its arena is small and its
// plan bounds the arenas of other strategies (PlanProfile.cpp). The next candidate depends only on
// plans that are taken into account. Hence, the result does not depend on the number of processors.
//
// Each plan is compared with the bounds that earlier plans gave it. If a plan is better than its
// bounds, these are wrong, and every candidate is planned.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Pipelines/PlanSearch.h"
#include "AxisPairs.h"
#include "PlanWorkers.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <set>

using namespace mlir;
using namespace mlir::fsdp;
using State = SearchedPlan::State;

namespace {
class Search {
public:
  using BeforePlan = llvm::function_ref<void(const SearchProgress &)>;
  Search(ModuleOp imported, const StepOptions &options, const Cluster &cluster,
         BeforePlan beforePlan);
  SearchResult run();

private:
  using Key = std::tuple<bool, double, bool, double, int64_t, bool, unsigned, unsigned>;
  bool isExcluded(unsigned number) const;
  bool isOpen(unsigned number) const;
  Key getKey(unsigned number) const;
  bool openPairs();
  std::vector<unsigned> listWanted() const;
  State getState(unsigned number) const;
  void planAll();
  void take(const PlannedCandidate &plan);
  void raiseBounds(unsigned number);
  void checkBounds(const PlannedCandidate &plan);
  SearchedPlan describe(unsigned number) const;
  SearchProgress getProgress(unsigned next) const;

  const Cluster &cluster;
  BeforePlan beforePlan;
  std::vector<Candidate> candidates;
  AxisPairs pairs;
  std::vector<CandidateState> states;
  PlanWorkers workers;
  std::vector<std::optional<PlannedCandidate>> plans;
  std::vector<PlanProfile> profiles; ///< of all plans
  std::vector<unsigned> numRaised;   ///< for each candidate, profiles that have raised its bounds
  SearchGoal goal;
  std::optional<unsigned> best; ///< candidate of the fastest plan that fits
  SearchResult result;
  std::set<std::pair<const AxisPair *, std::string>> planned; ///< pairs with shardings
};
} // namespace

Search::Search(ModuleOp imported, const StepOptions &options, const Cluster &cluster,
               BeforePlan beforePlan)
    : cluster(cluster), beforePlan(beforePlan),
      candidates(listCandidates(imported, options, cluster)), pairs(candidates),
      workers({imported, candidates, states, cluster}), plans(candidates.size()),
      numRaised(candidates.size(), 0) {
  goal.limit = options.plan.memoryLimit;
  goal.all = options.driver.searchAll;
  StructureReader structures(imported);
  for (const Candidate &candidate : candidates)
    states.push_back({structures.read(candidate), PlanBounds()});
}

/// Returns whether the candidate is planned, dropped, or excluded by its bounds.
bool Search::isExcluded(unsigned number) const {
  const CandidateState &state = states[number];
  return state.isDone || (state.isDropped && !goal.all) || goal.excludes(state.bounds);
}

/// Updates the pairs of axes, and opens further ones if all open pairs are compared. Returns
/// whether a pair is open that was waiting before.
bool Search::openPairs() {
  auto getBound = [&](unsigned number) -> std::optional<double> {
    const PlanBounds &bounds = states[number].bounds;
    bool mayFit = goal.limit == 0 || bounds.bytes <= goal.limit;
    return mayFit ? std::optional(bounds.getSeconds()) : std::nullopt;
  };
  auto getGroup = [&](unsigned number) { return candidates[number].group; };
  pairs.update(
      goal.seconds, getBound, [&](unsigned number) { return isExcluded(number); }, getGroup);
  return (goal.all || pairs.areCompared()) && pairs.open(goal.seconds, goal.all);
}

/// Returns whether the candidate may be the best plan, and its axes are open.
bool Search::isOpen(unsigned number) const {
  const AxisPair &pair = pairs.of(number);
  if (isExcluded(number) || pair.state != AxisPair::State::open)
    return false;
  return goal.all || goal.isSmallest || AxisPairs::isWorthwhile(pair, goal.seconds);
}

/// Returns the key by which candidates are sorted: candidates of pairs that are not compared are
/// the first, then those of pairs with fast plans, so that these exclude others.
Search::Key Search::getKey(unsigned number) const {
  const AxisPair &pair = pairs.of(number);
  const CandidateState &state = states[number];
  unsigned group = candidates[number].group;
  if (goal.all) // the members of a group follow each other
    return {true, 0, true, 0, 0, true, group, number};
  bool isNext = !goal.isSmallest && !pair.isCompared && pair.firstGroup.value_or(group) == group;
  bool byTime = !goal.isSmallest;
  // A pair is compared by plans with the options of the fastest one.
  bool isOther = isNext && best && candidates[number].ofPlan != candidates[*best].ofPlan;
  return {!isNext,
          byTime && !isNext ? pair.seconds : 0,
          isOther,
          byTime ? state.bounds.getSeconds() : 0,
          state.bounds.bytes,
          !state.structure.gathersAgain,
          group,
          number};
}

/// Returns the candidate to plan next, and those that may follow it.
std::vector<unsigned> Search::listWanted() const {
  std::vector<Key> open;
  for (unsigned number = 0; number < states.size(); ++number)
    if (isOpen(number))
      open.push_back(getKey(number));
  llvm::sort(open);
  std::vector<unsigned> wanted;
  std::set<std::pair<const AxisPair *, std::string>> listed;
  llvm::SmallPtrSet<const AxisPair *, 4> unplanned;
  for (const Key &key : open) {
    unsigned number = std::get<7>(key);
    const AxisPair &pair = pairs.of(number);
    const std::string &sharding = states[number].structure.sharding;
    // The first plan of a pair or of a sharding may exclude its other candidates.
    if (!goal.all &&
        ((!pair.firstGroup && !unplanned.insert(&pair).second) ||
         (planned.count({&pair, sharding}) == 0 && !listed.insert({&pair, sharding}).second)))
      continue;
    wanted.push_back(number);
  }
  return wanted;
}

void Search::planAll() {
  while (true) {
    bool isAnyOpened = openPairs();
    std::vector<unsigned> wanted = listWanted();
    if (wanted.empty() && !isAnyOpened)
      return;
    if (wanted.empty())
      continue;
    beforePlan(getProgress(wanted.front()));
    take(workers.plan(wanted, goal));
    llvm::BitVector needed;
    for (unsigned number = 0; number < states.size(); ++number)
      if (isOpen(number)) {
        needed.resize(std::max(needed.size(), candidates[number].group + 1));
        needed.set(candidates[number].group);
      }
    workers.endGroups([&](unsigned group) { return group < needed.size() && needed[group]; });
  }
}

/// Returns what became of a candidate, or `untried` if it may still be planned.
State Search::getState(unsigned number) const {
  const PlanBounds &bounds = states[number].bounds;
  if (const std::optional<PlannedCandidate> &plan = plans[number])
    return plan->isLost ? State::lost : plan->problem.empty() ? State::planned : State::unplannable;
  return pairs.of(number).state == AxisPair::State::refused ? State::refused
         : goal.limit > 0 && bounds.bytes > goal.limit      ? State::tooLarge
         : goal.excludes(bounds)                            ? State::tooSlow
         : states[number].isDropped                         ? State::dropped
                                                            : State::untried;
}

SearchProgress Search::getProgress(unsigned next) const {
  using Phase = SearchProgress::Phase;
  SearchProgress progress;
  progress.phase = goal.isSmallest             ? Phase::shrinking
                   : pairs.of(next).isCompared ? Phase::proving
                                               : Phase::comparing;
  progress.candidates = states.size();
  progress.seconds = goal.seconds;
  for (unsigned number = 0; number < states.size(); ++number) {
    State state = getState(number);
    const AxisPair &pair = pairs.of(number);
    bool isTried = pair.state == AxisPair::State::open &&
                   (goal.isSmallest || AxisPairs::isWorthwhile(pair, goal.seconds));
    progress.planned += states[number].isDone;
    progress.tooLarge += state == State::tooLarge;
    progress.tooSlow += state == State::tooSlow;
    progress.refused += state == State::refused;
    progress.dropped += state == State::dropped;
    progress.open += state == State::untried && isTried;
    progress.waiting += state == State::untried && !isTried;
  }
  return progress;
}

void Search::take(const PlannedCandidate &plan) {
  if (plan.isRefused)
    return pairs.refuse(plan.candidate, plan.problem);
  // If no schedule can fit, the bounds that follow from the plan exclude its candidate. If no
  // plan fits, the search for the smallest arena plans the candidate again.
  bool isDropped = !goal.all && !goal.isSmallest && plan.isTooSlow(goal.seconds);
  CandidateState &state = states[plan.candidate];
  state.isDropped = isDropped;
  if (!isDropped)
    checkBounds(plan);
  if (plan.cannotFit && !isDropped)
    state.bounds.bytes = std::max(state.bounds.bytes, goal.limit + 1);
  double fastest = goal.seconds;
  if (!plan.cannotFit && !isDropped) {
    state.isDone = true;
    plans[plan.candidate] = plan;
    goal.add(plan);
  }
  if (goal.seconds != fastest)
    best = plan.candidate;
  AxisPair &pair = pairs.of(plan.candidate);
  if (!pair.firstGroup) {
    pair.firstGroup = candidates[plan.candidate].group;
    for (unsigned number = 0; number < states.size(); ++number)
      states[number].isAllowed |= &pairs.of(number) == &pair;
  }
  planned.insert({&pair, state.structure.sharding});
  bool fits = plan.problem.empty() && !plan.cannotFit && !isDropped &&
              (goal.limit == 0 || plan.bytes <= goal.limit);
  if (fits && (pair.seconds == 0 || plan.seconds < pair.seconds))
    pair.seconds = plan.seconds;
  if (!plan.profile || (!plan.problem.empty() && !isDropped))
    return;
  profiles.push_back(*plan.profile);
  for (unsigned number = 0; number < states.size(); ++number)
    if (number == plan.candidate || !goal.excludes(states[number].bounds))
      raiseBounds(number);
}

/// Raises the bounds of a candidate by those that follow from plans since the last call.
void Search::raiseBounds(unsigned number) {
  CandidateState &state = states[number];
  for (unsigned &next = numRaised[number]; next < profiles.size(); ++next)
    state.bounds.raise(profiles[next].getBounds(candidates[number], state.structure, cluster));
}

void Search::checkBounds(const PlannedCandidate &plan) {
  static constexpr double tolerance = 1e-9;
  const PlanBounds &bounds = states[plan.candidate].bounds;
  bool fits = goal.limit == 0 || plan.bytes <= goal.limit;
  double seconds = fits ? bounds.getSeconds() : bounds.seconds;
  if (!plan.problem.empty() ||
      (bounds.bytes <= plan.bytes && seconds <= plan.seconds * (1 + tolerance)))
    return;
  result.wrongBounds.push_back(llvm::join(candidates[plan.candidate].spelled, " ") + ": " +
                               std::to_string(plan.seconds) + " s of at least " +
                               std::to_string(seconds) + " s, " + std::to_string(plan.bytes) +
                               " bytes of at least " + std::to_string(bounds.bytes) + " bytes");
  goal.all = true;
}

SearchedPlan Search::describe(unsigned number) const {
  SearchedPlan searched;
  searched.state = getState(number);
  searched.spelled = candidates[number].spelled;
  searched.options = candidates[number].options;
  if (const std::optional<PlannedCandidate> &plan = plans[number]) {
    searched.seconds = plan->seconds;
    searched.bytes = plan->bytes;
    searched.limit = plan->limit;
    searched.problem = plan->problem;
    return searched;
  }
  searched.problem = pairs.of(number).problem;
  searched.seconds = states[number].bounds.getSeconds();
  searched.bytes = states[number].bounds.bytes;
  return searched;
}

SearchResult Search::run() {
  planAll();
  if (goal.seconds == 0 && goal.limit > 0) {
    goal.isSmallest = true;
    for (unsigned number = 0; number < states.size(); ++number)
      raiseBounds(number);
    planAll();
  }
  result.plans.reserve(candidates.size());
  for (unsigned number = 0; number < candidates.size(); ++number)
    result.plans.push_back(describe(number));
  auto isFaster = [](const SearchedPlan &a, const SearchedPlan &b) {
    return std::pair(a.seconds, a.bytes) < std::pair(b.seconds, b.bytes);
  };
  for (auto [number, plan] : llvm::enumerate(result.plans)) {
    if (plan.state != State::planned)
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
                               llvm::function_ref<void(const SearchProgress &)> beforePlan) {
  return Search(imported, options, cluster, beforePlan).run();
}
