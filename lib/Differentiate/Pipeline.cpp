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
  if (options.update.gradDivide == "tokens") // weigh batches by the number of their targets
    pm.addPass(createWeighLossPass());
  pm.addPass(configure(createAddBackwardPass(), options, {{"remarks", "false"}}));
  // Bodies of adjoints repeat what the sweep read twice. CSE must run before the clones are made,
  // because it would merge these with their originals.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // Clones read parameters, so they are made before parameters are gathered again.
  pm.addPass(createCloneCheapForwardPass());
  pm.addPass(createRegatherParametersPass());
  pm.addPass(createVerifyDifferentiatedPass());
}
