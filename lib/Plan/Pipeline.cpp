//===- Pipeline.cpp - The order of the Plan stage ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Plan/Pipeline.h"
#include "fsdp/Plan/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

void fsdp::buildPlanPipeline(OpPassManager &pm, const PlanOptions &options) {
  // Conversions become dispatches, so they come before the kernels.
  pm.addNestedPass<func::FuncOp>(createCastCollectivesPass());
  pm.addPass(createOutlineKernelsPass());
  // A program has one level of loops. Behind outlining: a call is smaller than what it calls.
  pm.addNestedPass<func::FuncOp>(createUnrollLoopsPass());
  // Before lifetimes are looked at.
  pm.addNestedPass<func::FuncOp>(createSinkToUsesPass());
  if (options.checkpointing != "none") {
    pm.addPass(createRematerialisePass(
        {options.checkpointing, options.memoryLimit, options.overlap, options.forwardPrefetch,
         options.backwardPrefetch, options.cluster, options.offload, options.offloadMinBytes,
         options.copyPrefetch, options.bucketBytes, options.keepGathers, options.hostComputes}));
    pm.addNestedPass<func::FuncOp>(createSinkToUsesPass());
  }
  // Values to buffers, buffers to offsets: one after the other, so that either can be read and
  // tested.
  pm.addPass(createAssignBuffersPass());
  if (options.offload != "none")
    pm.addPass(createOffloadBuffersPass({options.offload, options.offloadMinBytes,
                                         options.checkpointing == "auto", options.hostComputes}));
  if (options.overlap)
    pm.addPass(createScheduleCollectivesPass({options.forwardPrefetch, options.backwardPrefetch,
                                              options.memoryLimit, options.cluster,
                                              options.copyPrefetch, options.bucketBytes}));
  pm.addPass(createAddInitProgramsPass());
  pm.addPass(createPackArenasPass());
  pm.addPass(createVerifyPlannedPass());
}

void fsdp::registerPlanPipeline() {
  PassPipelineRegistration<>("fsdp-plan", "Dispatches to kernels and programs over packed arenas",
                             [](OpPassManager &pm) { buildPlanPipeline(pm, {}); });
}
