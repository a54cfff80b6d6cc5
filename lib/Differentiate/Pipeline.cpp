//===- Pipeline.cpp - The stage Differentiate -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Differentiate/Passes.h"
#include "fsdp/Options/PassConfiguration.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

void fsdp::buildDifferentiatePipeline(OpPassManager &pm, const StepOptions &options) {
  // Weigh the loss of each micro-batch by its number of targets.
  if (options.update.gradDivide == "tokens")
    pm.addPass(createWeighLossPass());
  pm.addPass(configure(createAddBackwardPass(), options, {{"remarks", "false"}}));
  // Functions have one block, so that regions need no simplification.
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  // Merge duplicate ops in the bodies of adjoints. CSE must run before CloneCheapForward, because
  // CSE after it would merge the clones with their originals.
  pm.addPass(createCanonicalizerPass(config));
  pm.addPass(createCSEPass());
  // Clones may read parameters, so make the clones before parameters are gathered again.
  pm.addPass(createCloneCheapForwardPass());
  pm.addPass(createRegatherParametersPass());
  pm.addPass(createVerifyDifferentiatedPass());
}
