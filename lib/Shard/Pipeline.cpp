//===- Pipeline.cpp - The Shard stage ------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/TargetInfo.h"
#include "fsdp/Options/PassConfiguration.h"
#include "fsdp/Shard/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::fsdp;

void fsdp::buildShardPipeline(OpPassManager &pm, const StepOptions &options) {
  pm.addPass(configure(createApplyPrecisionPass(), options));
  pm.addPass(
      configure(createPartitionTensorsPass(), options, {{"cluster", chooseCluster(options)}}));
  ParamStorage storage = getTargetInfo(options.codegen)->getParamStorage();
  pm.addPass(
      configure(createFormUnitsPass(), options, {{"auto-storage", printValue(storage).front()}}));
  pm.addPass(configure(createInsertUnshardPass(), options));
  pm.addPass(createVerifyShardedPass());
  pm.addPass(createVerifyPrecisionPass());
}
