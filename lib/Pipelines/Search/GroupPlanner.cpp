//===- GroupPlanner.cpp - Plans of a group of candidates --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. Find out whether the model can be split over the axes of the group, and run the stages Shard
//    to Fuse once. They read no option in which members of a group differ.
// 2. For each member, run the stage Plan on a copy of the module. The next member shares the first
//    part of the stage if it differs only in --prefetch. Measure the workspace of the kernels, the
//    arena and the schedule as --explain does.
//
//===----------------------------------------------------------------------===//

#include "GroupPlanner.h"
#include "fsdp/Analysis/PlanMeasures.h"
#include "fsdp/Analysis/Schedule.h"
#include "fsdp/Options/PassConfiguration.h"
#include "fsdp/Shard/Passes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

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

/// Returns why the model cannot be split over the axes of a mesh, or an empty text.
static std::string findRefusal(ModuleOp imported, const StepOptions &options) {
  std::string problem;
  ScopedDiagnosticHandler handler(imported.getContext(), [&](Diagnostic &diag) {
    if (diag.getSeverity() == DiagnosticSeverity::Error && problem.empty())
      problem = diag.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = imported.clone();
  PassManager pm(module->getContext(), ModuleOp::getOperationName());
  pm.enableVerifier(false);
  pm.addPass(configure(createApplyPrecisionPass(), options));
  pm.addPass(configure(createPartitionTensorsPass(), options));
  return succeeded(pm.run(*module)) ? "" : problem.empty() ? "the model is not split" : problem;
}

/// Runs the phases whose result all members share. If one of them fails, `fused` is null.
void GroupPlanner::runFirstPhases(unsigned number) {
  const StepOptions &options = input.candidates[number].options;
  isBegun = true;
  ActivationSplit split = getActivationSplit(options);
  if (split.context * split.tensor > 1 && !input.states[number].isAllowed)
    refusal = findRefusal(input.imported, options);
  StepCompilation step{{}, options, /*code=*/false, /*onlyMeasures=*/true};
  if (!refusal.empty())
    return;
  step.module = input.imported.clone();
  if (succeeded(runPhases(step, "shard", "fuse")))
    fused = std::move(step.module);
}

/// Returns a compilation that planFused() can end. Candidates that differ only in --prefetch share
/// the buffers if they are planned one after the other.
FailureOr<StepCompilation> GroupPlanner::begin(const Candidate &candidate) {
  StepCompilation step{{}, candidate.options, /*code=*/false, /*onlyMeasures=*/true};
  if (candidate.options.plan.checkpointing == "auto") {
    step.module = fused->clone();
    return step;
  }
  std::vector<std::string> key = candidate.spelled;
  llvm::erase_if(key, [](StringRef option) { return option.starts_with("--prefetch="); });
  if (!buffers || key != buffersOf) {
    step.module = fused->clone();
    if (failed(assignBuffers(step)))
      return failure();
    buffers = std::move(step.module);
    buffersOf = std::move(key);
  }
  step.module = buffers->clone();
  step.hasBuffers = step.hasScratch = true;
  return step;
}

/// Returns a plan without a limit of its time if the stage Plan fails.
PlannedCandidate GroupPlanner::planFusedModule(unsigned number, double fastest) {
  const Candidate &candidate = input.candidates[number];
  const PlanStructure &structure = input.states[number].structure;
  PlannedCandidate plan;
  FailureOr<StepCompilation> begun = begin(candidate);
  if (failed(begun))
    return plan;
  StepCompilation &step = *begun;
  // Only the size of the smallest arena and the list of all plans need the exact bytes of plans
  // that do not fit.
  if (!goal.all && !goal.isSmallest)
    step.cannotFit = [&](ModuleOp planned) {
      PlanProfile profile(planned, candidate, structure, input.cluster);
      plan.cannotFit =
          profile.getBounds(candidate, structure, input.cluster, /*withTime=*/false).bytes >
          goal.limit;
      if (!plan.profile) {
        plan.firstSeconds = measureSchedule(planned).scheduled;
        plan.profile = std::move(profile);
      }
      return plan.cannotFit || plan.isTooSlow(fastest);
    };
  if (failed(planFused(step)))
    return plan;
  ScheduleReport schedule = measureSchedule(*step.module);
  plan.seconds = schedule.scheduled;
  plan.bytes = measureMemory(*step.module).peak;
  plan.limit = findLimit(schedule, candidate.options);
  if (!plan.profile)
    plan.profile.emplace(*step.module, candidate, structure, input.cluster);
  return plan;
}

PlannedCandidate GroupPlanner::plan(unsigned number, double fastest) {
  ScopedDiagnosticHandler handler(input.imported.getContext(), [&](Diagnostic &diag) {
    if (diag.getSeverity() == DiagnosticSeverity::Error && error.empty())
      error = diag.str();
    return success();
  });
  if (!isBegun)
    runFirstPhases(number);
  PlannedCandidate plan;
  if (fused) {
    error.clear();
    plan = planFusedModule(number, fastest);
  }
  plan.candidate = number;
  plan.isRefused = !refusal.empty();
  if (plan.limit.empty())
    plan.problem = plan.isRefused ? refusal : error.empty() ? "planning failed" : error;
  return plan;
}

llvm::json::Value PlannedCandidate::toJson() const {
  llvm::json::Object object{{"candidate", candidate},  {"seconds", seconds},
                            {"bytes", bytes},          {"limit", limit},
                            {"cannot_fit", cannotFit}, {"problem", llvm::json::fixUTF8(problem)},
                            {"refused", isRefused},    {"first", firstSeconds}};
  if (profile)
    object["profile"] = profile->toJson();
  return object;
}

PlannedCandidate PlannedCandidate::fromJson(const llvm::json::Object &object) {
  PlannedCandidate plan;
  plan.candidate = static_cast<unsigned>(object.getInteger("candidate").value_or(0));
  plan.seconds = object.getNumber("seconds").value_or(0);
  plan.firstSeconds = object.getNumber("first").value_or(0);
  plan.bytes = object.getInteger("bytes").value_or(0);
  plan.limit = object.getString("limit")->str();
  plan.problem = object.getString("problem")->str();
  plan.cannotFit = object.getBoolean("cannot_fit").value_or(false);
  plan.isRefused = object.getBoolean("refused").value_or(false);
  if (const llvm::json::Object *profile = object.getObject("profile"))
    plan.profile = PlanProfile::fromJson(*profile);
  return plan;
}
