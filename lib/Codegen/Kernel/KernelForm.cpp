//===- KernelForm.cpp - Kernels and phase functions as IR -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "fsdp/IR/DiagnosticText.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the index of the result that the kernel writes to argument `argument`: the value of the
/// attribute `fsdp.out` or `fsdp.inout`.
static std::optional<int64_t> getResultOf(func::FuncOp kernel, unsigned argument) {
  for (StringRef name : {outAttr, inoutAttr})
    if (auto attr = kernel.getArgAttrOfType<IntegerAttr>(argument, name))
      return attr.getInt();
  return std::nullopt;
}

BlockArgument fsdp::getDestination(func::FuncOp kernel, unsigned index) {
  for (BlockArgument argument : kernel.getArguments())
    if (getResultOf(kernel, argument.getArgNumber()) == index)
      return argument;
  return {};
}

LogicalResult fsdp::describeKernel(func::FuncOp kernel, KernelInfo &info) {
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitError("expected a kernel with one block, found ")
           << describeCount(kernel.getBody().getBlocks().size(), "block", "blocks");
  info = KernelInfo();
  info.name = kernel.getName().str();
  SmallVector<bool> covered(kernel.getNumResults());
  for (BlockArgument argument : kernel.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || !type.hasStaticShape() || !type.getElementType().isIntOrIndexOrFloat())
      return kernel.emitError("argument ")
             << number << ": expected a tensor of static shape with integer, index or float "
             << "elements, found " << argument.getType();
    info.bindingBytes.push_back(getStorageBytes(type));
    std::optional<int64_t> result = getResultOf(kernel, number);
    info.writes.push_back(result.has_value());
    info.reads.push_back(!argument.use_empty());
    if (!result)
      continue;
    if (*result < 0 || *result >= kernel.getNumResults())
      return kernel.emitError("argument ")
             << number << ": '" << (kernel.getArgAttr(number, outAttr) ? outAttr : inoutAttr)
             << " = " << *result << "' names result " << *result
             << "; expected the index of a result of the kernel, less than "
             << kernel.getNumResults();
    if (covered[*result])
      return kernel.emitError("argument ") << number << " is a second destination of result "
                                           << *result << "; expected one argument with '" << outAttr
                                           << "' or '" << inoutAttr << "' per result";
    if (kernel.getResultTypes()[*result] != type)
      return kernel.emitError("argument ")
             << number << " is the destination of result " << *result
             << ": expected the type of the result, " << kernel.getResultTypes()[*result]
             << ", found " << type;
    covered[*result] = true;
  }
  for (auto [index, has] : llvm::enumerate(covered))
    if (!has)
      return kernel.emitError("result ")
             << index << " has no destination: expected an argument with '" << outAttr << " = "
             << index << "' or '" << inoutAttr << " = " << index << "', found none";
  return success();
}

func::FuncOp fsdp::createPhase(OpBuilder &builder, func::FuncOp kernel, StringRef symbol,
                               int64_t extent, int64_t tile, bool shared) {
  MLIRContext *context = builder.getContext();
  SmallVector<Type> types;
  for (Type type : kernel.getArgumentTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    types.push_back(MemRefType::get(tensor.getShape(), getStorageType(tensor.getElementType())));
  }
  auto scratch = MemRefType::get({ShapedType::kDynamic}, builder.getI8Type());
  if (shared)
    types.push_back(scratch);
  types.append({builder.getIndexType(), builder.getIndexType(), scratch});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(kernel);
  auto phase =
      func::FuncOp::create(builder, kernel.getLoc(), symbol, FunctionType::get(context, types, {}));
  phase->setAttr(extentAttr, builder.getI64IntegerAttr(extent));
  phase->setAttr(tileAttr, builder.getI64IntegerAttr(tile));
  Block *entry = phase.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  func::ReturnOp::create(builder, kernel.getLoc());
  return phase;
}

/// Name of the pattern that compares all pairs of values that a loop carries.
static constexpr StringLiteral mergeCarriedValues =
    "(anonymous namespace)::RemoveDuplicateSuccessorInputUses";

void fsdp::addCleanUp(OpPassManager &pm) {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Normal);
  pm.addPass(createCanonicalizerPass(config, {mergeCarriedValues.str()}));
  pm.addPass(createCSEPass());
}

LogicalResult fsdp::runLowering(PassManager &pm, ModuleOp module) {
  pm.enableVerifier(false);
  return success(succeeded(pm.run(module)) && succeeded(verify(module)));
}

void fsdp::cleanUp(Operation *root) {
  MLIRContext *context = root->getContext();
  RewritePatternSet patterns(context);
  for (Dialect *dialect : context->getLoadedDialects())
    dialect->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName name : context->getRegisteredOperations())
    name.getCanonicalizationPatterns(patterns, context);
  // A failure to converge is ignored, because the IR is valid anyway.
  FrozenRewritePatternSet frozen(std::move(patterns), {mergeCarriedValues.str()});
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Normal);
  (void)applyPatternsGreedily(root, frozen, config);
  IRRewriter rewriter(context);
  DominanceInfo dominance(root);
  eliminateCommonSubExpressions(rewriter, dominance, root);
}

void fsdp::makeScratchStatic(func::FuncOp phase) {
  OpBuilder b(&phase.front(), phase.front().begin());
  for (BlockArgument argument : phase.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type || type.hasStaticShape())
      continue;
    auto fixed = MemRefType::get({INT64_C(1) << 40}, type.getElementType());
    argument.setType(fixed);
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : argument.getUses())
      uses.push_back(&use);
    if (uses.empty())
      continue;
    Value dynamic = memref::CastOp::create(b, phase.getLoc(), type, argument);
    for (OpOperand *use : uses)
      use->set(dynamic);
  }
  phase.setType(FunctionType::get(phase.getContext(), phase.front().getArgumentTypes(), {}));
}

void fsdp::loadCodegenDialects(MLIRContext &context) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
  context
      .loadDialect<affine::AffineDialect, arith::ArithDialect, bufferization::BufferizationDialect,
                   cf::ControlFlowDialect, func::FuncDialect, linalg::LinalgDialect,
                   LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                   tensor::TensorDialect, ub::UBDialect, vector::VectorDialect>();
}
