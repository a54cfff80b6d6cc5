//===- Pipeline.cpp - The Update stage --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Update/Pipeline.h"
#include "fsdp/Update/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void fsdp::buildUpdatePipeline(OpPassManager &pm,
                               const UpdateOptions &options) {
  pm.addPass(createAccumulateGradientsPass());
  pm.addPass(createAddStepBlockPass({options.clipGradNorm}));
  ApplyOptimizerPassOptions apply;
  apply.optimizerName = options.optimizer;
  apply.beta1 = options.beta1;
  apply.beta2 = options.beta2;
  apply.eps = options.eps;
  apply.weightDecay = options.weightDecay;
  apply.momentum = options.momentum;
  pm.addPass(createApplyOptimizerPass(apply));
  pm.addPass(createCSEPass()); // constants and scalars of many units
  pm.addPass(createVerifyUpdatedPass());
}
