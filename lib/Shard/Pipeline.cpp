//===- Pipeline.cpp - The Shard stage ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Shard/Pipeline.h"
#include "fsdp/Shard/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

void fsdp::buildShardPipeline(OpPassManager &pm, const ShardOptions &options) {
  FormUnitsPassOptions form;
  form.mesh = options.mesh;
  form.strategy = options.strategy;
  form.policy = options.policy;
  form.layerPattern = options.layerPattern;
  form.minNumParams = options.minNumParams;
  form.reshard = options.reshardAfterForward;
  form.remarks = options.remarks;
  pm.addPass(createFormUnitsPass(form));
  InsertUnshardPassOptions insert;
  insert.gradAccum = options.gradAccum;
  pm.addPass(createInsertUnshardPass(insert));
  pm.addPass(createVerifyShardedPass());
}
