//===- Pipeline.cpp - The order of the Import passes ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Import/Pipeline.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Folds and merges; what became dead goes.
static void addCleanUp(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

/// Weights become arguments before anything may merge equal-looking constants.
static void addInterface(OpPassManager &pm, const ImportOptions &options) {
  pm.addPass(createRefuseForeignPass());
  pm.addPass(createReadStopMarkersPass());
  SelectEntryPassOptions entry;
  entry.entry = options.entry;
  pm.addPass(createSelectEntryPass(entry));
  pm.addPass(createCheckMarksPass());
  MarkBatchPassOptions batch;
  batch.batch.assign(options.batch.begin(), options.batch.end());
  pm.addPass(createMarkBatchPass(batch));
  // Without the inliner's own canonicalisation, which merges constants.
  pm.addPass(createInlinerPass({}, [](OpPassManager &) {}));
  pm.addPass(createSymbolDCEPass());
  BindBuffersPassOptions buffers;
  buffers.buffers.assign(options.buffers.begin(), options.buffers.end());
  pm.addPass(createBindBuffersPass(buffers));
  LiftParametersPassOptions params;
  params.params = options.params;
  params.paramsFile = options.paramsFile;
  pm.addPass(createLiftParametersPass(params));
}

/// One spelling per operation. Twice: dropping a dead result (an argmax) or a
/// unit dimension lets the rest fold.
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
  pm.addNestedPass<func::FuncOp>(createDropAssertsPass());
  pm.addNestedPass<func::FuncOp>(createNormaliseOpsPass());
  addCleanUp(pm);
}

/// Ops that later stages know: before bodies are fused, and before views move.
static void addRaising(OpPassManager &pm, const ImportOptions &options) {
  pm.addNestedPass<func::FuncOp>(createRaiseEmbeddingPass());
  pm.addNestedPass<func::FuncOp>(createFoldCopiesPass());
  addCleanUp(pm);
  pm.addNestedPass<func::FuncOp>(createRaiseSoftmaxPass());
  pm.addNestedPass<func::FuncOp>(createRaiseCrossEntropyPass());
  AttachLossPassOptions loss;
  loss.loss = options.attachLoss;
  loss.ignore = options.ignoreIndex;
  pm.addNestedPass<func::FuncOp>(createAttachLossPass(loss));
  pm.addNestedPass<func::FuncOp>(createExpandLookupPass());
  addCleanUp(pm);
  pm.addNestedPass<func::FuncOp>(createBoundIdsPass());
  if (options.raiseAttention != "false") {
    RaiseAttentionPassOptions attention;
    attention.assumeKeys = options.raiseAttention == "assume-keys";
    pm.addNestedPass<func::FuncOp>(createRaiseAttentionPass(attention));
    addCleanUp(pm);
  }
}

/// Products on the layouts they have, rows without views between, long bodies.
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

void fsdp::buildImportPipeline(OpPassManager &pm, const ImportOptions &options) {
  addInterface(pm, options);
  addNormalisation(pm);
  addRaising(pm, options);
  addForming(pm);
  pm.addNestedPass<func::FuncOp>(createNameBatchPass());
  pm.addNestedPass<func::FuncOp>(createInferInitPass());
  addCleanUp(pm);
  pm.addPass(createVerifyImportedPass());
}

namespace {
/// ImportOptions as options of a textual pipeline.
struct ImportPipelineOptions : PassPipelineOptions<ImportPipelineOptions> {
  Option<std::string> entry{*this, "entry",
                            llvm::cl::desc("The function to train; empty: the only public one")};
  Option<std::string> params{*this, "params", llvm::cl::desc("Positions and names of parameters")};
  Option<std::string> paramsFile{*this, "params-file",
                                 llvm::cl::desc("JSON sidecar of parameters")};
  ListOption<std::string> batch{*this, "batch",
                                llvm::cl::desc("Names of batch inputs: INDEX=NAME")};
  ListOption<std::string> buffers{*this, "buffers",
                                  llvm::cl::desc("NAME|INDEX=causal|zeros|ones|keep|FILE")};
  Option<std::string> attachLoss{*this, "attach-loss",
                                 llvm::cl::desc("cross_entropy, or empty for none")};
  Option<std::string> ignoreIndex{*this, "ignore-index",
                                  llvm::cl::desc("Targets that the attached loss skips")};
  Option<std::string> raiseAttention{
      *this, "raise-attention",
      llvm::cl::desc("Products around a softmax become fsdp.attention: true, false or assume-keys"),
      llvm::cl::init(ImportOptions().raiseAttention)};
};
} // namespace

void fsdp::registerImportPipeline() {
  PassPipelineRegistration<ImportPipelineOptions>(
      "fsdp-import", "Foreign MLIR to the model contract",
      [](OpPassManager &pm, const ImportPipelineOptions &options) {
        ImportOptions plain;
        plain.entry = options.entry;
        plain.params = options.params;
        plain.paramsFile = options.paramsFile;
        plain.batch.assign(options.batch.begin(), options.batch.end());
        plain.buffers.assign(options.buffers.begin(), options.buffers.end());
        plain.attachLoss = options.attachLoss;
        plain.ignoreIndex = options.ignoreIndex;
        plain.raiseAttention = options.raiseAttention;
        buildImportPipeline(pm, plain);
      });
}
