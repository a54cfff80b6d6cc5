//===- LowerToLLVM.cpp - Loops and vectors to the LLVM dialect --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers the phase functions of all kernels to the LLVM dialect. A memref becomes a single pointer.
// The phase functions may contain ops of memref, scf, vector, affine, linalg (on buffers), arith
// and math. The result calls no library function, and no floating-point operation has a fast-math
// flag.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Math/MathPatterns.h"
#include "CpuLowering.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

void fsdp::loadCpuDialects(MLIRContext &context) {
  loadCodegenDialects(context);
  context.loadDialect<x86vector::X86VectorDialect>();
}

static LogicalResult runPatterns(Operation *root, function_ref<void(RewritePatternSet &)> fill) {
  RewritePatternSet patterns(root->getContext());
  fill(patterns);
  GreedyRewriteConfig config;
  config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  if (failed(applyPatternsGreedily(root, std::move(patterns), config)))
    return root->emitError("a step of the lowering did not converge");
  return success();
}

void fsdp::addLLVMConversions(PassManager &pm, bool useLibm) {
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  if (useLibm)
    pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createUBToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions function;
  function.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(function));
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

LogicalResult fsdp::lowerToLLVMDialect(ModuleOp module) {
  for (auto phase : module.getOps<func::FuncOp>())
    makeScratchStatic(phase);
  MLIRContext *context = module.getContext();
  PassManager first(context);
  first.enableVerifier(false);
  first.addPass(createConvertLinalgToLoopsPass());
  first.addNestedPass<func::FuncOp>(createConvertVectorToSCFPass());
  if (failed(first.run(module)))
    return failure();

  // Replace 16-bit arithmetic first, because the expansions of math support only f32 and f64.
  if (failed(runPatterns(module,
                         [](RewritePatternSet &p) {
                           populateLegaliseFloatsPatterns(p);
                           arith::populateCeilFloorDivExpandOpsPatterns(p);
                           math::populateExpansionPatterns(p, {"ctlz"});
                         })) ||
      failed(runPatterns(module, [](RewritePatternSet &p) {
        populateExpandMathPatterns(p);
        populateLegaliseFloatsPatterns(p);
      })))
    return failure();

  storeBf16AsBits(module);

  PassManager pm(context);
  addCleanUp(pm);
  pm.addPass(createLoopInvariantCodeMotionPass());
  addLLVMConversions(pm, /*useLibm=*/false);
  pm.addPass(createCSEPass());
  return runLowering(pm, module);
}
