//===- Registration.cpp - Dialects and passes of the project ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Pipelines/Registration.h"
#include "fsdp/Analysis/Passes.h"
#include "fsdp/Analysis/TargetInfo.h"
#include "fsdp/Codegen/Passes.h"
#include "fsdp/Differentiate/Passes.h"
#include "fsdp/Fuse/Passes.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/Import/ParseModel.h"
#include "fsdp/Import/Passes.h"
#include "fsdp/Options/PassConfiguration.h"
#include "fsdp/Plan/Passes.h"
#include "fsdp/Report/Passes.h"
#include "fsdp/Shard/Passes.h"
#include "fsdp/Update/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

using namespace mlir;
using namespace mlir::fsdp;

void fsdp::registerDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<FSDPDialect>();
  registerHloDialects(registry);
}

/// Checks the options of a pipeline of fsdp-opt. Returns a message if they are invalid, or nothing.
static std::optional<std::string> checkPipeline(const StepOptions &options) {
  if (std::optional<std::string> problem = findUnknownTarget(options))
    return problem;
  return std::nullopt;
}

/// Appends the pipelines of all stages from Import to Plan.
static void buildStepPipeline(OpPassManager &pm, const StepOptions &options) {
  buildImportPipeline(pm, options);
  buildShardPipeline(pm, options);
  buildDifferentiatePipeline(pm, options);
  buildUpdatePipeline(pm, options);
  buildFusePipeline(pm, options);
  buildPlanPipeline(pm, options);
}

/// Registers a pipeline for each stage (--fsdp-import, --fsdp-shard, ...), and --fsdp-step, which
/// runs all stages from Import to Plan.
static void registerPipelines() {
  auto add = [](StringRef name, StringRef description, unsigned stages, auto build) {
    registerStepPipeline(name, description, stages, build, checkPipeline);
  };
  add("fsdp-import", "Foreign MLIR to the model contract", unsigned(Stage::import),
      buildImportPipeline);
  add("fsdp-shard", "The model contract to a sharded forward", unsigned(Stage::shard),
      buildShardPipeline);
  add("fsdp-differentiate", "The sharded forward to forward and backward",
      unsigned(Stage::differentiate), buildDifferentiatePipeline);
  add("fsdp-update", "Gradients to an update of the state", unsigned(Stage::update),
      buildUpdatePipeline);
  add("fsdp-fuse", "Computation to dispatches, one kernel each", unsigned(Stage::fuse),
      buildFusePipeline);
  add("fsdp-plan", "Dispatches to kernels and programs over packed arenas", unsigned(Stage::plan),
      buildPlanPipeline);
  add("fsdp-codegen", "Kernels to phase functions on buffers", unsigned(Stage::codegen),
      buildCodegenPipeline);
  add("fsdp-step", "A model to the plan of its training step", allStages, buildStepPipeline);
}

void fsdp::registerPasses() {
  registerTargets();
  registerFSDPAnalysisPasses();
  registerFSDPImportPasses();
  registerFSDPShardPasses();
  registerFSDPDifferentiatePasses();
  registerFSDPUpdatePasses();
  registerFSDPFusePasses();
  registerFSDPPlanPasses();
  registerFSDPCodegenPasses();
  registerFSDPReportPasses();
  registerPipelines();
}
