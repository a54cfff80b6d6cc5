//===- GroupPlanner.cpp - Plans of a group of candidates --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. Run the stages Shard to Fuse once. They read no option in which members of a group differ.
// 2. While the goal does not exclude all other members: select the member with the least bound of
//    the time, and run the stage Plan on a copy of the module. The next member shares the first
//    part of the stage if it differs only in --prefetch. Measure the workspace of the kernels, the
//    arena and the schedule as --explain does.
// 3. Derive bounds for the other members from the plan.
//
//===----------------------------------------------------------------------===//

#include "GroupPlanner.h"
#include "fsdp/Analysis/PlanMeasures.h"
#include "fsdp/Analysis/Schedule.h"
#include "fsdp/Pipelines/Compiler.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Part by which a bound may exceed the exact time, because sums are rounded.
static constexpr double rounding = 1e-9;
/// Least part of a step for which transfers stall it, if they limit the step.
static constexpr double leastExposed = 0.1;

bool SearchGoal::excludes(const PlanBounds &bounds) const {
  if (all)
    return false;
  if (isSmallest)
    return bytes > 0 && bounds.bytes >= bytes;
  return (limit > 0 && bounds.bytes > limit) ||
         (seconds > 0 && bounds.getSeconds() * (1 - rounding) > seconds);
}

void SearchGoal::add(const PlannedCandidate &plan) {
  if (!plan.problem.empty() || plan.cannotFit)
    return;
  if (bytes == 0 || plan.bytes < bytes)
    bytes = plan.bytes;
  if ((limit == 0 || plan.bytes <= limit) && (seconds == 0 || plan.seconds < seconds))
    seconds = plan.seconds;
}

/// Returns what limits the time of a plan.
static std::string findLimit(const ScheduleReport &schedule, const StepOptions &options) {
  double links = 0, host = 0, memory = 0;
  for (const ExposedReport &row : schedule.exposed)
    (row.limit == "memory" ? memory : isa<CollectiveOp>(row.op) ? links : host) += row.exposed;
  if (schedule.getExposed() > leastExposed * schedule.scheduled)
    return memory >= std::max(links, host) ? "memory" : links >= host ? "links" : "host link";
  return options.plan.checkpointing == "none" ? "compute" : "memory";
}

namespace {
/// The modules from which the candidates of a group are planned.
class SharedPhases {
public:
  /// `fused` is the module after the stage Fuse.
  explicit SharedPhases(ModuleOp fused) : fused(fused) {}
  FailureOr<StepCompilation> begin(const Candidate &candidate);

private:
  ModuleOp fused;
  OwningOpRef<ModuleOp> buffers;
  std::vector<std::string> buffersOf; ///< options of `buffers`
};
} // namespace

/// Returns a compilation that planFused() can end. Candidates that differ only in --prefetch share
/// the buffers if they are planned one after the other.
FailureOr<StepCompilation> SharedPhases::begin(const Candidate &candidate) {
  StepCompilation step{{}, candidate.options, /*code=*/false, /*onlyMeasures=*/true};
  if (candidate.options.plan.checkpointing == "auto") {
    step.module = fused.clone();
    return step;
  }
  std::vector<std::string> key = candidate.spelled;
  llvm::erase_if(key, [](StringRef option) { return option.starts_with("--prefetch="); });
  if (!buffers || key != buffersOf) {
    step.module = fused.clone();
    if (failed(assignBuffers(step)))
      return failure();
    buffers = std::move(step.module);
    buffersOf = std::move(key);
  }
  step.module = buffers->clone();
  step.hasBuffers = true;
  return step;
}

/// Plans a candidate of a task.
static PlannedCandidate planCandidate(SharedPhases &shared, const GroupTask &task,
                                      unsigned number) {
  const Candidate &candidate = task.candidates[number];
  const PlanStructure &structure = task.states[number].structure;
  PlannedCandidate plan;
  plan.candidate = number;
  FailureOr<StepCompilation> begun = shared.begin(candidate);
  if (failed(begun))
    return plan;
  StepCompilation &step = *begun;
  // Only the size of the smallest arena and the list of all plans need the exact bytes of plans
  // that do not fit.
  if (!task.goal.all && !task.goal.isSmallest)
    step.cannotFit = [&](ModuleOp planned) {
      PlanProfile profile(planned, candidate, structure, task.cluster);
      plan.cannotFit =
          profile.getBounds(candidate, structure, task.cluster, /*withTime=*/false).bytes >
          task.goal.limit;
      return plan.cannotFit;
    };
  if (failed(planFused(step)))
    return plan;
  ScheduleReport schedule = measureSchedule(*step.module);
  plan.seconds = schedule.scheduled;
  plan.bytes = measureMemory(*step.module).peak;
  plan.limit = findLimit(schedule, candidate.options);
  plan.profile.emplace(*step.module, candidate, structure, task.cluster);
  return plan;
}

void fsdp::planGroup(GroupTask task, llvm::function_ref<void(const PlannedCandidate &)> report) {
  std::string error;
  ScopedDiagnosticHandler handler(task.imported.getContext(), [&](Diagnostic &diag) {
    if (diag.getSeverity() == DiagnosticSeverity::Error && error.empty())
      error = diag.str();
    return success();
  });
  StepCompilation step{task.imported.clone(), task.candidates[task.members.front()].options,
                       /*code=*/false, /*onlyMeasures=*/true};
  bool isFused = succeeded(runPhases(step, "shard", "fuse"));
  SharedPhases shared(*step.module);
  while (true) {
    llvm::erase_if(task.members,
                   [&](unsigned member) { return task.goal.excludes(task.states[member].bounds); });
    auto next = llvm::min_element(task.members, [&](unsigned a, unsigned b) {
      return std::pair(task.states[a].bounds.getSeconds(), a) <
             std::pair(task.states[b].bounds.getSeconds(), b);
    });
    if (next == task.members.end())
      return;
    unsigned number = *next;
    task.members.erase(next);
    PlannedCandidate plan;
    if (isFused)
      plan = planCandidate(shared, task, number);
    plan.candidate = number;
    if (!plan.profile)
      plan.problem = error.empty() ? "planning failed" : error;
    if (isFused)
      error.clear();
    report(plan);
    task.goal.add(plan);
    for (unsigned member : task.members)
      if (plan.profile)
        task.states[member].bounds.raise(plan.profile->getBounds(
            task.candidates[member], task.states[member].structure, task.cluster));
  }
}

llvm::json::Value PlannedCandidate::toJson() const {
  llvm::json::Object object{{"candidate", candidate},  {"seconds", seconds},
                            {"bytes", bytes},          {"limit", limit},
                            {"cannot_fit", cannotFit}, {"problem", problem}};
  if (profile)
    object["profile"] = profile->toJson();
  return object;
}

PlannedCandidate PlannedCandidate::fromJson(const llvm::json::Object &object) {
  PlannedCandidate plan;
  plan.candidate = static_cast<unsigned>(object.getInteger("candidate").value_or(0));
  plan.seconds = object.getNumber("seconds").value_or(0);
  plan.bytes = object.getInteger("bytes").value_or(0);
  plan.limit = object.getString("limit")->str();
  plan.problem = object.getString("problem")->str();
  plan.cannotFit = object.getBoolean("cannot_fit").value_or(false);
  if (const llvm::json::Object *profile = object.getObject("profile"))
    plan.profile = PlanProfile::fromJson(*profile);
  return plan;
}
