//===- Pipeline.cpp - The Update stage -----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Options/PassConfiguration.h"
#include "fsdp/Update/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void fsdp::buildUpdatePipeline(OpPassManager &pm, const StepOptions &options) {
  pm.addNestedPass<func::FuncOp>(createExpandRingPass());
  pm.addPass(createAddReferencePass());
  pm.addPass(createAccumulateGradientsPass());
  pm.addPass(createExchangeRowsPass());
  pm.addPass(configure(createAddStepBlockPass(), options));
  pm.addPass(createBindKeysPass());
  pm.addPass(configure(createApplyOptimizerPass(), options));
  // Merge the equal constants and scalars that were built for many units.
  pm.addPass(createCSEPass());
  // Form fma before any pass duplicates a body.
  pm.addPass(createFormFmaPass());
  pm.addPass(createVerifyUpdatedPass());
  pm.addPass(configure(createVerifyDtypesPass(), options));
}
