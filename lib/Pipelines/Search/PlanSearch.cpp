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
//    After each round, further axes are opened if they may be faster. The next round then has one
//    group of each of them, so that a fast plan is known before the other groups are planned.
// 3. If no plan fits, search for the smallest arena in the same way.
//
// The first group of a pair gathers parameters again if it can, because its arena is small and its
// plan bounds the arenas of other strategies (PlanProfile.cpp). The number of groups of a round is
// a constant, and a child process knows only the plans of earlier rounds. Hence, the result does
// not depend on the number of processors.
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
#include <set>

using namespace mlir;
using namespace mlir::fsdp;
using State = SearchedPlan::State;

static constexpr size_t groupsPerRound = 4;

namespace {
class Search {
public:
  using BeforeRound = llvm::function_ref<void(const SearchProgress &)>;
  Search(ModuleOp imported, const StepOptions &options, const Cluster &cluster,
         BeforeRound beforeRound);
  SearchResult run();

private:
  SmallVector<unsigned> selectGroups() const;
  bool openPairs();
  State getState(unsigned number) const;
  void runRounds();
  void take(const PlannedCandidate &plan);
  void checkBounds(const PlannedCandidate &plan);
  SearchedPlan describe(unsigned number) const;
  SearchProgress getProgress(ArrayRef<unsigned> chosen) const;

  ModuleOp imported;
  const Cluster &cluster;
  BeforeRound beforeRound;
  std::vector<Candidate> candidates;
  AxisPairs pairs;
  std::vector<CandidateState> states;
  std::vector<SmallVector<unsigned>> groups; ///< members by group
  std::vector<std::optional<PlannedCandidate>> plans;
  SearchGoal goal;
  SearchResult result;
  bool isFirstRound = true;
  std::set<std::pair<const AxisPair *, std::string>> planned; ///< pairs with shardings
  llvm::SmallDenseSet<unsigned> retried;                      ///< groups whose process ended early
};
} // namespace

Search::Search(ModuleOp imported, const StepOptions &options, const Cluster &cluster,
               BeforeRound beforeRound)
    : imported(imported), cluster(cluster), beforeRound(beforeRound),
      candidates(listCandidates(options, cluster)), pairs(imported, candidates),
      plans(candidates.size()) {
  goal.limit = options.plan.memoryLimit;
  goal.all = options.driver.searchAll;
  StructureReader structures(imported);
  for (auto [number, candidate] : llvm::enumerate(candidates)) {
    states.push_back({structures.read(candidate), PlanBounds(), /*isDone=*/false});
    groups.resize(candidate.group + 1);
    groups[candidate.group].push_back(number);
  }
}

/// Opens pairs of axes. Returns whether a pair is open that was waiting before.
bool Search::openPairs() {
  auto isExcluded = [&](unsigned number) {
    return states[number].isDone || goal.excludes(states[number].bounds);
  };
  auto getBound = [&](unsigned number) -> std::optional<double> {
    const PlanBounds &bounds = states[number].bounds;
    bool mayFit = goal.limit == 0 || bounds.bytes <= goal.limit;
    return mayFit ? std::optional(bounds.getSeconds()) : std::nullopt;
  };
  pairs.update(getBound, isExcluded);
  return pairs.open(goal.seconds, goal.all);
}

/// Returns the groups of the next round: one group of each open pair that is not planned, or those
/// with the least bounds if there is no such pair.
SmallVector<unsigned> Search::selectGroups() const {
  using Key = std::tuple<double, double, int64_t, bool, unsigned>;
  std::vector<Key> open;
  for (auto [group, members] : llvm::enumerate(groups)) {
    const AxisPair &pair = pairs.of(members.front());
    if (pair.state != AxisPair::State::open)
      continue;
    // Groups of pairs with fast plans are first, so that these exclude others.
    double ofPair = goal.isSmallest ? 0 : pair.seconds;
    std::optional<Key> least;
    for (unsigned member : members) {
      const CandidateState &state = states[member];
      Key key{ofPair, goal.isSmallest ? 0 : state.bounds.getSeconds(), state.bounds.bytes,
              !state.structure.gathersAgain, group};
      if (!state.isDone && !goal.excludes(state.bounds) && (!least || key < *least))
        least = key;
    }
    if (least)
      open.push_back(*least);
  }
  llvm::sort(open);
  SmallVector<unsigned> chosen, firsts;
  llvm::SmallPtrSet<const AxisPair *, 4> unplanned;
  std::set<std::pair<const AxisPair *, std::string>> inRound;
  for (const Key &key : open) {
    unsigned group = std::get<4>(key);
    const AxisPair &pair = pairs.of(groups[group].front());
    const std::string &sharding = states[groups[group].front()].structure.sharding;
    bool isTried = pair.isPlanned &&
                   (goal.all || goal.isSmallest || AxisPairs::isWorthwhile(pair, goal.seconds));
    if (pair.isPlanned && !isTried)
      continue;
    // The plans of a group may exclude other groups of its sharding.
    if (!goal.all && planned.count({&pair, sharding}) == 0 &&
        !inRound.insert({&pair, sharding}).second)
      continue;
    if (isTried && chosen.size() < (isFirstRound ? 1 : groupsPerRound))
      chosen.push_back(group);
    else if (!pair.isPlanned && unplanned.insert(&pair).second)
      firsts.push_back(group);
  }
  return firsts.empty() ? chosen : firsts;
}

void Search::runRounds() {
  while (true) {
    bool isAnyOpened = openPairs();
    SmallVector<unsigned> chosen = selectGroups();
    if (chosen.empty() && !isAnyOpened)
      return;
    if (chosen.empty())
      continue;
    beforeRound(getProgress(chosen));
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
                                                            : State::untried;
}

SearchProgress Search::getProgress(ArrayRef<unsigned> chosen) const {
  using Phase = SearchProgress::Phase;
  SearchProgress progress;
  progress.phase = goal.isSmallest                                      ? Phase::shrinking
                   : pairs.of(groups[chosen.front()].front()).isPlanned ? Phase::proving
                                                                        : Phase::comparing;
  progress.candidates = states.size();
  progress.seconds = goal.seconds;
  for (unsigned number = 0; number < states.size(); ++number) {
    State state = getState(number);
    const AxisPair &pair = pairs.of(number);
    bool isOpen = pair.state == AxisPair::State::open &&
                  (goal.isSmallest || AxisPairs::isWorthwhile(pair, goal.seconds));
    progress.planned += states[number].isDone;
    progress.tooLarge += state == State::tooLarge;
    progress.tooSlow += state == State::tooSlow;
    progress.refused += state == State::refused;
    progress.open += state == State::untried && isOpen;
    progress.waiting += state == State::untried && !isOpen;
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
  planned.insert({&pair, states[plan.candidate].structure.sharding});
  bool fits =
      plan.problem.empty() && !plan.cannotFit && (goal.limit == 0 || plan.bytes <= goal.limit);
  if (fits && (pair.seconds == 0 || plan.seconds < pair.seconds))
    pair.seconds = plan.seconds;
  if (plan.profile)
    for (auto [candidate, state] : llvm::zip_equal(candidates, states))
      state.bounds.raise(plan.profile->getBounds(candidate, state.structure, cluster,
                                                 !goal.excludes(state.bounds)));
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
                               llvm::function_ref<void(const SearchProgress &)> beforeRound) {
  return Search(imported, options, cluster, beforeRound).run();
}
