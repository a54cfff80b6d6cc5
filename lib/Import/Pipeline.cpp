//===- Pipeline.cpp - The order of the Import passes ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Import/Passes.h"
#include "fsdp/Options/PassConfiguration.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Folds ops, merges equal values and erases unused values.
static void addCleanUp(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

/// Selects the function, and turns weights into arguments. These passes must run before any pass
/// that can merge equal constants.
static void addInterface(OpPassManager &pm, const StepOptions &options) {
  pm.addPass(createLowerStablehloPass());
  pm.addPass(createRefuseForeignPass());
  pm.addPass(createReadStopMarkersPass());
  pm.addPass(configure(createSelectEntryPass(), options));
  pm.addPass(createCheckMarksPass());
  pm.addPass(configure(createMarkBatchPass(), options));
  // Skip the inliner's own canonicalisation, which merges constants.
  pm.addPass(createInlinerPass({}, [](OpPassManager &) {}));
  pm.addPass(createSymbolDCEPass());
  pm.addPass(configure(createBindBuffersPass(), options));
  pm.addPass(configure(createLiftParametersPass(), options));
  pm.addPass(createReadDropoutMarkersPass());
}

/// Rewrites the different forms of each operation to one canonical op. The loop runs twice, because
/// dropping a dead result (an argmax) or a unit dimension enables further folds.
static void addNormalisation(OpPassManager &pm) {
  pm.addPass(createLowerTosaPass());
  pm.addNestedPass<func::FuncOp>(createDemoteFloat64Pass());
  addCleanUp(pm);
  RefuseForeignPassOptions shapes;
  shapes.shapes = true;
  pm.addPass(createRefuseForeignPass(shapes));
  pm.addNestedPass<func::FuncOp>(createRefuseUnwrittenPass());
  pm.addPass(createConvertElementwiseToLinalgPass());
  for (unsigned round = 0; round < 2; ++round) {
    pm.addNestedPass<func::FuncOp>(createNormaliseOpsPass());
    pm.addPass(createLinalgFoldUnitExtentDimsPass());
    addCleanUp(pm);
  }
  pm.addNestedPass<func::FuncOp>(createEvaluateConstantsPass());
  pm.addNestedPass<func::FuncOp>(createDropAssertsPass());
  pm.addNestedPass<func::FuncOp>(createNormaliseOpsPass());
  addCleanUp(pm);
}

/// Raises patterns to ops of linalg and fsdp, before later passes fuse bodies and move views.
static void addRaising(OpPassManager &pm, const StepOptions &options) {
  pm.addNestedPass<func::FuncOp>(createJoinPositionsPass());
  pm.addNestedPass<func::FuncOp>(createRaiseEmbeddingPass());
  pm.addNestedPass<func::FuncOp>(createFoldCopiesPass());
  addCleanUp(pm);
  pm.addNestedPass<func::FuncOp>(createRaiseSoftmaxPass());
  pm.addNestedPass<func::FuncOp>(createRaiseCrossEntropyPass());
  pm.addNestedPass<func::FuncOp>(configure(createAttachLossPass(), options));
  pm.addNestedPass<func::FuncOp>(createExpandLookupPass());
  addCleanUp(pm);
  pm.addNestedPass<func::FuncOp>(createBoundIdsPass());
  if (RaiseAttention how = options.import.raiseAttention; how != RaiseAttention::False) {
    RaiseAttentionPassOptions attention;
    attention.assumeKeys = how == RaiseAttention::AssumeKeys;
    pm.addNestedPass<func::FuncOp>(createRaiseAttentionPass(attention));
    addCleanUp(pm);
  }
}

/// Removes views around products and between rowwise ops, and fuses elementwise bodies.
static void addForming(OpPassManager &pm) {
  for (StringRef phase : {"heads", "rows"}) {
    FoldReshapesPassOptions reshapes;
    reshapes.phase = phase.str();
    pm.addNestedPass<func::FuncOp>(createFoldReshapesPass(reshapes));
    pm.addNestedPass<func::FuncOp>(createFoldCopiesPass());
    addCleanUp(pm);
  }
  pm.addNestedPass<func::FuncOp>(createFuseElementwisePass());
  addCleanUp(pm);
  pm.addNestedPass<func::FuncOp>(createFormContractionsPass());
}

void fsdp::buildImportPipeline(OpPassManager &pm, const StepOptions &options) {
  addInterface(pm, options);
  addNormalisation(pm);
  addRaising(pm, options);
  addForming(pm);
  pm.addNestedPass<func::FuncOp>(createNameBatchPass());
  pm.addNestedPass<func::FuncOp>(createInferInitPass());
  addCleanUp(pm);
  pm.addPass(createVerifyImportedPass());
}
