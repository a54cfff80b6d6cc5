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
  // Weigh batches by the number of their targets.
  if (options.update.gradDivide == "tokens")
    pm.addPass(createWeighLossPass());
  pm.addPass(configure(createAddBackwardPass(), options, {{"remarks", "false"}}));
  // Bodies of adjoints contain duplicates of values that the reverse sweep uses more than once. CSE
  // merges the duplicates. It must run before values are cloned, because it would merge the clones
  // with their originals.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // Clones read parameters, so they are made before parameters are gathered again.
  pm.addPass(createCloneCheapForwardPass());
  pm.addPass(createRegatherParametersPass());
  pm.addPass(createVerifyDifferentiatedPass());
}
