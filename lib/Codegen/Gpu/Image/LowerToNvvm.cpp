//===- LowerToNvvm.cpp - Entries to the LLVM dialect and NVVM ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Entries are functions of the LLVM dialect that contain ops of scf, arith and math. Math ops that
// NVPTX does not support are reported as errors here. Otherwise instruction selection would abort
// the process.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Nests/NestEntries.h"
#include "Codegen/Kernel/Lowering.h"
#include "Codegen/Math/MathPatterns.h"
#include "GpuLowering.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

void fsdp::loadGpuDialects(MLIRContext &context) {
  loadCodegenDialects(context);
  DialectRegistry registry;
  registerNVVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<NVVM::NVVMDialect>();
}

/// Returns true for math ops for which the GPU has instructions: rounding to integers, signs,
/// square roots, fma and bit counts.
static bool hasInstruction(Operation *op) {
  return isa<math::FmaOp, math::AbsFOp, math::AbsIOp, math::CopySignOp, math::FloorOp, math::CeilOp,
             math::TruncOp, math::RoundEvenOp, math::SqrtOp, math::CtPopOp,
             math::CountLeadingZerosOp, math::CountTrailingZerosOp>(op);
}

static LogicalResult verifyMath(ModuleOp entries) {
  WalkResult found = entries.walk([](Operation *op) {
    if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) || hasInstruction(op))
      return WalkResult::advance();
    op->emitError("'") << op->getName() << "' on " << op->getResult(0).getType()
                       << " has no GPU implementation";
    return WalkResult::interrupt();
  });
  return failure(found.wasInterrupted());
}

static LogicalResult legalise(ModuleOp entries) {
  auto run = [&](function_ref<void(RewritePatternSet &)> fill) {
    RewritePatternSet patterns(entries.getContext());
    fill(patterns);
    GreedyRewriteConfig config;
    config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
    // Do not merge equal blocks: LLVM merges them later, and comparing all blocks here would take
    // longer than applying the patterns.
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    return applyPatternsGreedily(entries, std::move(patterns), config);
  };
  // Replace 16-bit arithmetic first, because the expansions of math support only f32 and f64.
  if (failed(run([](RewritePatternSet &p) {
        populateGpuFloatPatterns(p);
        populateLegaliseFloatsPatterns(p);
        arith::populateCeilFloorDivExpandOpsPatterns(p);
      })) ||
      failed(run([](RewritePatternSet &p) {
        populateGpuMathPatterns(p);
        populateGpuFloatPatterns(p);
        populateExpandMathPatterns(p);
        populateLegaliseFloatsPatterns(p);
      })))
    return entries.emitError("a step of the lowering for GPUs did not converge");
  return verifyMath(entries);
}

/// Adds the passes that turn entries on memrefs into functions of the LLVM dialect on pointers.
static void addMemoryPasses(PassManager &pm) {
  pm.addPass(createConvertLinalgToLoopsPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
}

LogicalResult fsdp::lowerToNvvm(ModuleOp entries) {
  bool onMemory = !entries.getOps<func::FuncOp>().empty();
  for (auto entry : entries.getOps<func::FuncOp>())
    makeScratchStatic(entry);
  if (failed(legalise(entries)))
    return failure();
  storeBf16AsBits(entries);
  PassManager pm(entries.getContext());
  addCleanUp(pm);
  if (onMemory)
    addMemoryPasses(pm);
  pm.addPass(createSCFToControlFlowPass());
  if (onMemory) {
    pm.addPass(createFinalizeMemRefToLLVMConversionPass());
    ConvertFuncToLLVMPassOptions function;
    function.useBarePtrCallConv = true;
    pm.addPass(createConvertFuncToLLVMPass(function));
  }
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createConvertNVVMToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCSEPass());
  if (failed(runLowering(pm, entries)))
    return failure();
  makeNestEntries(entries);
  return success();
}
