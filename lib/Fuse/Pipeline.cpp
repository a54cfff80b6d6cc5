//===- Pipeline.cpp - The Fuse stage ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Fuse/Pipeline.h"
#include "fsdp/Fuse/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void fsdp::buildFusePipeline(OpPassManager &pm, const FuseOptions &options) {
  pm.addNestedPass<func::FuncOp>(createDecomposeNamedOpsPass(options));
  // Merges the chains that a loss and its gradient both need. Fills may be
  // shared here: each dispatch gets a copy of its own.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (ChunkLimits chunks = options.chunks.value_or(cpuChunks); chunks.maxBytes)
    pm.addNestedPass<func::FuncOp>(
        createChunkRowsPass({chunks.maxBytes, chunks.minRows, options.remarks}));
  pm.addNestedPass<func::FuncOp>(createFormDispatchesPass());
  if (options.rowAlignment)
    pm.addNestedPass<func::FuncOp>(createAlignRowsPass({options.rowAlignment}));
  pm.addNestedPass<func::FuncOp>(createAssignInplacePass());
  pm.addNestedPass<func::FuncOp>(createVerifyFusedPass());
}
