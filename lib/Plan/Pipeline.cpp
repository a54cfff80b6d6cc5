//===- Pipeline.cpp - The order of the Plan stage ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/TargetInfo.h"
#include "fsdp/Options/PassConfiguration.h"
#include "fsdp/Plan/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

void fsdp::buildBufferPipeline(OpPassManager &pm, const StepOptions &options) {
  const PlanOptions &plan = options.plan;
  std::string hostComputes = getTargetInfo(options.codegen)->hostComputes() ? "true" : "false",
              keepGathers = options.isGiven("reshard-after-forward") ? "false" : "true";
  PassSetting host{"host-computes", hostComputes}, cluster{"cluster", chooseCluster(options)};
  // Insert the conversions of collectives before kernels are outlined, because outlining turns each
  // conversion into a dispatch of a kernel.
  pm.addNestedPass<func::FuncOp>(createCastCollectivesPass());
  pm.addPass(createOutlineKernelsPass());
  // A program may have only one level of loops. Unroll the other loops after kernels are outlined,
  // because a loop body then consists of calls and is small.
  pm.addNestedPass<func::FuncOp>(createUnrollLoopsPass());
  // Move ops towards their uses before lifetimes are computed.
  pm.addNestedPass<func::FuncOp>(createSinkToUsesPass());
  if (plan.checkpointing != "none") {
    pm.addPass(configure(createRematerialisePass(), options,
                         {host, cluster, {"keep-gathers", keepGathers}}));
    pm.addNestedPass<func::FuncOp>(createSinkToUsesPass());
  }
  // Separate passes assign buffers and offsets, so that tests can read both results.
  pm.addPass(createAssignBuffersPass());
  if (plan.offload.any())
    pm.addPass(configure(createOffloadBuffersPass(), options,
                         {host, {"marked", plan.checkpointing == "auto" ? "true" : "false"}}));
}

void fsdp::buildArenaPipeline(OpPassManager &pm, const StepOptions &options) {
  if (options.plan.overlap)
    pm.addPass(
        configure(createScheduleCollectivesPass(), options, {{"cluster", chooseCluster(options)}}));
  pm.addPass(createAddInitProgramsPass());
  if (options.plan.asyncSave)
    pm.addPass(createAddSnapshotProgramPass());
  pm.addPass(createPackArenasPass());
  pm.addPass(createVerifyPlannedPass());
}

void fsdp::buildPlanPipeline(OpPassManager &pm, const StepOptions &options) {
  buildBufferPipeline(pm, options);
  buildArenaPipeline(pm, options);
}
