//===- Pipeline.cpp - The Update stage --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Update/Pipeline.h"
#include "fsdp/Update/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

void fsdp::buildUpdatePipeline(OpPassManager &pm, const UpdateOptions &options) {
  pm.addPass(createAccumulateGradientsPass());
  pm.addPass(createExchangeRowsPass());
  AddStepBlockPassOptions block;
  block.clipGradNorm = options.clipGradNorm;
  block.gradDivide = options.gradDivide;
  block.gradPredivide = options.gradPredivide;
  block.lossScale = options.lossScale;
  block.lossScaleInit = options.lossScaleInit;
  block.growthInterval = options.lossScaleGrowthInterval;
  pm.addPass(createAddStepBlockPass(block));
  pm.addPass(createBindKeysPass());
  ApplyOptimizerPassOptions apply;
  apply.optimizerName = options.optimizer;
  apply.beta1 = options.beta1;
  apply.beta2 = options.beta2;
  apply.eps = options.eps;
  apply.weightDecay = options.weightDecay;
  apply.momentum = options.momentum;
  apply.stateDtype = options.stateDtype;
  apply.stateRounding = options.stateRounding;
  pm.addPass(createApplyOptimizerPass(apply));
  pm.addPass(createCSEPass());     // constants and scalars of many units
  pm.addPass(createFormFmaPass()); // before anything computes a body twice
  pm.addPass(createVerifyUpdatedPass());
  pm.addPass(createVerifyDtypesPass({options.reduceDtype, options.stateDtype}));
}

namespace {
/// UpdateOptions as options of a textual pipeline.
struct UpdatePipelineOptions : PassPipelineOptions<UpdatePipelineOptions> {
  Option<std::string> optimizer{*this, "optimizer", llvm::cl::desc("adamw or sgd"),
                                llvm::cl::init(UpdateOptions().optimizer)};
  Option<double> beta1{*this, "beta1", llvm::cl::desc("Decay rate of the first moment"),
                       llvm::cl::init(UpdateOptions().beta1)};
  Option<double> beta2{*this, "beta2", llvm::cl::desc("Decay rate of the second moment"),
                       llvm::cl::init(UpdateOptions().beta2)};
  Option<double> eps{*this, "eps", llvm::cl::desc("Added to the root of the second moment"),
                     llvm::cl::init(UpdateOptions().eps)};
  Option<double> weightDecay{*this, "weight-decay", llvm::cl::desc("Weight decay"),
                             llvm::cl::init(UpdateOptions().weightDecay)};
  Option<double> momentum{*this, "momentum", llvm::cl::desc("Momentum of sgd"),
                          llvm::cl::init(UpdateOptions().momentum)};
  Option<double> clipGradNorm{*this, "clip-grad-norm",
                              llvm::cl::desc("Largest gradient norm; 0: off"),
                              llvm::cl::init(UpdateOptions().clipGradNorm)};
};
} // namespace

void fsdp::registerUpdatePipeline() {
  PassPipelineRegistration<UpdatePipelineOptions>(
      "fsdp-update", "Gradients to an update of the state",
      [](OpPassManager &pm, const UpdatePipelineOptions &options) {
        UpdateOptions plain;
        plain.optimizer = options.optimizer;
        plain.beta1 = options.beta1;
        plain.beta2 = options.beta2;
        plain.eps = options.eps;
        plain.weightDecay = options.weightDecay;
        plain.momentum = options.momentum;
        plain.clipGradNorm = options.clipGradNorm;
        buildUpdatePipeline(pm, plain);
      });
}
