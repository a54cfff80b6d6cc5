//===- Pipeline.cpp - The Fuse stage ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/TargetInfo.h"
#include "fsdp/Fuse/Passes.h"
#include "fsdp/Options/PassConfiguration.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void fsdp::buildFusePipeline(OpPassManager &pm, const StepOptions &options) {
  std::shared_ptr<const TargetInfo> target = getTargetInfo(options.codegen);
  pm.addNestedPass<func::FuncOp>(configure(createDecomposeNamedOpsPass(target), options));
  // Functions have one block, so that regions need no simplification.
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  // Merge the ops that a loss and its gradient have in common. Equal fills are also merged. Each
  // dispatch nevertheless gets its own copy of the fills that it uses.
  pm.addPass(createCanonicalizerPass(config));
  pm.addPass(createCSEPass());
  ChunkLimits chunks = target->getChunkLimits();
  bool isGiven = options.fuse.maxChunkBytes >= 0;
  if (isGiven) // replace the target's minimum number of rows by the general minimum
    chunks = {options.fuse.maxChunkBytes, TargetInfo().getChunkLimits().minRows};
  if (chunks.maxBytes)
    pm.addNestedPass<func::FuncOp>(configure(createChunkRowsPass(), options,
                                             {{"max-bytes", std::to_string(chunks.maxBytes)},
                                              {"min-rows", std::to_string(chunks.minRows)},
                                              {"warnings", isGiven ? "true" : "false"}}));
  pm.addNestedPass<func::FuncOp>(createFormDispatchesPass());
  if (RowAlignment rows = target->getRowAlignment(); rows.bytes)
    pm.addNestedPass<func::FuncOp>(createAlignRowsPass({rows.bytes, rows.copies}));
  pm.addNestedPass<func::FuncOp>(createFoldHeadCopiesPass({target->getHeadAlignment()}));
  pm.addNestedPass<func::FuncOp>(createJoinFactorSumsPass(target));
  pm.addNestedPass<func::FuncOp>(createAssignInplacePass());
  pm.addNestedPass<func::FuncOp>(createVerifyFusedPass());
}
