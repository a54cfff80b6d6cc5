//===- PlanWorkers.cpp - Candidates planned ahead ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   wanted       c0 (g0)   c1 (g1)   c2 (g0)   c3 (g2)      groups g0, g1, g2
//   2 processes  g0: c0    g1: c1    --        --           the next that is free plans c3,
//                                                           because the process of g0 is busy
//
// The caller needs the plan of the first candidate before it knows the next one. The candidates
// after it are a guess. Their plans are kept until the caller asks for them, or are not used. Since
// a plan depends on its candidate only, the result of the search does not depend on which processes
// are faster, nor on their number.
//
// A process keeps the module of its group for further candidates. Its group is tried once more if
// the process ends early.
//
//===----------------------------------------------------------------------===//

#include "PlanWorkers.h"
#include <thread>

using namespace mlir;
using namespace mlir::fsdp;

/// Most processes that plan at a time, and most that exist. Each has a module of its own.
static constexpr size_t mostBusy = 8, mostProcesses = 16;

/// Marks a candidate as lost.
void PlanWorkers::fail(unsigned candidate, StringRef problem) {
  PlannedCandidate plan;
  plan.candidate = candidate;
  plan.problem = problem.str();
  plan.isLost = true;
  plans[candidate] = std::move(plan);
}

/// Takes an answer of a child process.
void PlanWorkers::take(const ChildAnswer &answer) {
  std::string problem = answer.problem;
  if (problem.empty()) {
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(answer.text);
    if (value) {
      plans[answer.candidate] = PlannedCandidate::fromJson(*value->getAsObject());
      return;
    }
    problem = llvm::toString(value.takeError());
  }
  if (!failed.insert(answer.child).second)
    lost[answer.child] = problem;
}

/// Lets a process plan the first candidate for which this is possible. Returns whether there is
/// one.
bool PlanWorkers::startNext(ArrayRef<unsigned> wanted, const SearchGoal &goal) {
  for (unsigned candidate : wanted) {
    unsigned group = input.candidates[candidate].group;
    if (plans.count(candidate) || children.isBusy(group) || lost.count(group))
      continue;
    if (!children.isRunning(group)) {
      if (children.list().size() >= mostProcesses)
        (void)children.endOldest();
      auto planner = std::make_shared<GroupPlanner>(input, goal);
      std::string problem = children.start(group, [planner](const ChildRequest &request) {
        std::string text;
        llvm::raw_string_ostream(text)
            << planner->plan(request.candidate, request.fastest).toJson();
        return text;
      });
      if (!problem.empty()) {
        // Processes that are busy may end, after which there may be room for another.
        if (children.countBusy() > 0)
          return false;
        lost[group] = problem;
        continue;
      }
    }
    children.ask(group, {candidate, goal.seconds});
    return true;
  }
  return false;
}

PlannedCandidate PlanWorkers::plan(ArrayRef<unsigned> wanted, const SearchGoal &goal) {
  unsigned next = wanted.front(), group = input.candidates[next].group;
  std::pair<bool, bool> ofGoal{goal.all, goal.isSmallest};
  if (std::exchange(goalOf, ofGoal) != ofGoal) {
    endGroups([](unsigned) { return false; });
    plans.clear();
  }
  static const size_t most = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, mostBusy);
  while (!plans.count(next) && !lost.count(group)) {
    while (children.countBusy() < most && startNext(wanted, goal))
      ;
    if (children.countBusy() > 0)
      for (const ChildAnswer &answer : children.wait())
        take(answer);
  }
  if (!plans.count(next))
    fail(next, lost[group]);
  PlannedCandidate plan = std::move(plans[next]);
  plans.erase(next);
  return plan;
}

void PlanWorkers::endGroups(llvm::function_ref<bool(unsigned)> isNeeded) {
  for (unsigned group : children.list())
    if (!isNeeded(group))
      children.end(group);
}
