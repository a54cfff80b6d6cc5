//===- RefuseForeign.cpp - Reject unsupported ops early ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reports unsupported ops with location and advice, before another pass can fail on them:
//
// - The first run of the pass reports ops of unsupported dialects (torch, tm_tensor, scf, memref),
//   random generators with state, regions of several blocks, and complex numbers. It also reports
//   arguments of dynamic shape, used arguments without elements, tensors of more than 2^48
//   elements, and resources of the wrong size.
// - With the option `shapes`, the pass runs after folding, and reports results whose shape is still
//   dynamic.
//
// Reports at most eight errors.
//
//===----------------------------------------------------------------------===//

#include "Interface/Advice.h"
#include "Interface/Positions.h"
#include "fsdp/IR/Sizes.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_REFUSEFOREIGNPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct RefuseForeignPass : public fsdp::impl::RefuseForeignPassBase<RefuseForeignPass> {
  using RefuseForeignPassBase::RefuseForeignPassBase;
  void runOnOperation() override;

private:
  LogicalResult checkOp(Operation *op);
  LogicalResult checkShapes(Operation *op);
};
} // namespace

/// Returns whether some pass of Import supports the op or removes it.
static bool isKnown(Operation *op) {
  if (isa<cf::AssertOp, ml_program::GlobalOp, ModuleOp>(op))
    return true;
  if (isa<linalg::FillRng2DOp>(op))
    return false;
  return op->getDialect() &&
         isa<func::FuncDialect, arith::ArithDialect, math::MathDialect, linalg::LinalgDialect,
             tensor::TensorDialect, tosa::TosaDialect, FSDPDialect>(op->getDialect());
}

static bool isComplex(Type type) { return isa<ComplexType>(getElementTypeOrSelf(type)); }

/// Returns whether a tensor has more than 2^48 elements.
static bool isTooLarge(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped && shaped.hasStaticShape() && !fitsElements(shaped.getShape());
}

/// Verifies that the resource of a constant has as many bytes as its type.
static LogicalResult checkBlob(Operation *op) {
  auto value = dyn_cast_or_null<DenseResourceElementsAttr>(constantValue(op));
  auto blob = value ? value.getRawHandle().getBlob() : nullptr;
  Type element = value ? value.getType().getElementType() : Type();
  if (!blob || !element.isIntOrFloat())
    return success();
  size_t expected =
      value.getType().getNumElements() * llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  if (blob->getData().size() == expected)
    return success();
  return emitError(op->getLoc()) << "the resource '" << value.getRawHandle().getKey()
                                 << "' expected " << expected << " bytes for " << value.getType()
                                 << ", found " << blob->getData().size();
}

LogicalResult RefuseForeignPass::checkOp(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (!isKnown(op)) {
    StringRef what = isa<ml_program::GlobalLoadOp, ml_program::GlobalStoreOp>(op)
                         ? " (state that persists between steps) "
                         : " ";
    InFlightDiagnostic diag = emitError(op->getLoc())
                              << "'" << name << "'" << what << "is not supported";
    if (StringRef advice = adviceForOp(name); !advice.empty())
      diag << "; " << advice;
    return diag;
  }
  if (llvm::any_of(op->getOperandTypes(), isComplex) ||
      llvm::any_of(op->getResultTypes(), isComplex))
    return emitError(op->getLoc())
           << "'" << name << "' works on complex numbers; " << adviceForOp("complex.");
  for (Type type : op->getResultTypes())
    if (isTooLarge(type))
      return emitError(op->getLoc())
             << "'" << name << "' expected results of at most 2^48 elements, found " << type;
  if (failed(checkBlob(op)))
    return failure();
  auto func = dyn_cast<func::FuncOp>(op);
  if (!func || func.isExternal())
    return success();
  if (!llvm::hasSingleElement(func.getBody()))
    return emitError(func.getLoc())
           << "'@" << func.getSymName() << "' has control flow; " << adviceForOp("cf.br");
  for (BlockArgument arg : func.getArguments()) {
    auto type = dyn_cast<ShapedType>(arg.getType());
    if (isTooLarge(arg.getType()))
      return emitError(arg.getLoc())
             << "argument " << arg.getArgNumber() << " of '@" << func.getSymName()
             << "' expected at most 2^48 elements, found " << arg.getType();
    // An argument that is not read may be empty.
    if (type && type.hasStaticShape() && type.getNumElements() == 0 && !arg.use_empty())
      return emitError(arg.getLoc())
             << "argument " << arg.getArgNumber() << " of '@" << func.getSymName()
             << "' has no elements, yet is used: " << arg.getType();
    if (type && type.hasStaticShape())
      continue;
    return emitError(arg.getLoc())
           << "argument " << arg.getArgNumber() << " of '@" << func.getSymName()
           << "' expected a tensor of static shape, found " << arg.getType()
           << "; export with fixed batch and sequence lengths";
  }
  return success();
}

LogicalResult RefuseForeignPass::checkShapes(Operation *op) {
  for (Type type : op->getResultTypes())
    if (auto shaped = dyn_cast<ShapedType>(type); shaped && !shaped.hasStaticShape())
      return emitError(op->getLoc()) << "'" << op->getName() << "' has a result of dynamic shape, "
                                     << type << "; export with fixed batch and sequence lengths";
  return success();
}

void RefuseForeignPass::runOnOperation() {
  unsigned refused = 0;
  getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (failed(shapes ? checkShapes(op) : checkOp(op))) {
      // If an op is reported, the ops in its regions are not reported.
      return ++refused < 8 ? WalkResult::skip() : WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  numRefused += refused;
  if (refused)
    signalPassFailure();
}
