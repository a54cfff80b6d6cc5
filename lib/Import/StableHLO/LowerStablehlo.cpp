//===- LowerStablehlo.cpp - StableHLO to linalg -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers the ops of StableHLO that `jax.export` writes for models, without StableHLO's library:
//
//   "stablehlo.add"(%a, %b)                ->   arith.addf on tensors
//   "stablehlo.dot_general", "reduce", ..  ->   linalg.generic
//   "stablehlo.slice", "pad", ..           ->   tensor.extract_slice, tensor.pad, ..
//   "stablehlo.composite"                  ->   a call of its decomposition
//
//  1. `jax.export` writes erfc(x) as a select of two polynomials. Such a select becomes one op
//     (RaiseErfc.cpp).
//  2. Each op is visited once, in order, and replaced by the values of its lowering. The ops are
//     not registered, so each lowering verifies the attributes and shapes that it reads.
//  3. Ops without a lowering are kept, and RefuseForeign.cpp reports them with advice.
//  4. JAX exports neither `stop_gradient` nor the differentiation rules that a user has defined. A
//     warning therefore states that the derivative may differ from the derivative that JAX
//     computes.
//
// The time is O(ops). ParseHlo.cpp parses the text. Quantised types and dynamic shapes are refused.
//
//===----------------------------------------------------------------------===//

#include "StableHLO/HloOps.h"
#include "StableHLO/RaiseErfc.h"
#include "fsdp/IR/Sizes.h"
#include "fsdp/IR/StopGradient.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_LOWERSTABLEHLOPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct LowerStablehloPass : public fsdp::impl::LowerStablehloPassBase<LowerStablehloPass> {
  using LowerStablehloPassBase::LowerStablehloPassBase;
  void runOnOperation() override;

private:
  HloResult lower(OpBuilder &b, Operation *op);
};
} // namespace

static bool isHlo(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  return dialect == "stablehlo" || dialect == "chlo";
}

/// Returns an `arith.constant` whose value is the attribute `value` of a `stablehlo.constant`.
static HloResult lowerConstant(OpBuilder &b, Operation *op) {
  auto value = dyn_cast_or_null<TypedAttr>(op->getAttr("value"));
  if (!value || value.getType() != op->getResult(0).getType() || !isa<ElementsAttr>(value))
    return op->emitError("expected the attribute 'value' with a dense constant of type ")
           << op->getResult(0).getType();
  return SmallVector<Value>{arith::ConstantOp::create(b, op->getLoc(), value)};
}

/// Replaces a composite by a call of the function in its attribute `decomposition`.
static HloResult lowerComposite(OpBuilder &b, Operation *op) {
  auto symbol = dyn_cast_or_null<FlatSymbolRefAttr>(op->getAttr("decomposition"));
  auto function = symbol ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, symbol) : nullptr;
  if (!function)
    return op->emitError("expected the attribute 'decomposition' with a function of the module");
  if (!llvm::equal(function.getArgumentTypes(), op->getOperandTypes()) ||
      !llvm::equal(function.getResultTypes(), op->getResultTypes()))
    return op->emitError("expected operands and results of the types of '@")
           << function.getSymName() << "', " << function.getFunctionType();
  auto call = func::CallOp::create(b, op->getLoc(), function, op->getOperands());
  return SmallVector<Value>(call.getResults());
}

/// `op` does not change values. Replaces the results of `op` by its operands.
static HloResult forward(OpBuilder &, Operation *op) {
  if (!llvm::equal(op->getOperandTypes(), op->getResultTypes()))
    return op->emitError("expected results of the operands' types");
  return SmallVector<Value>(op->getOperands());
}

using Lowering = HloResult (*)(OpBuilder &, Operation *);

static const std::pair<StringRef, Lowering> lowerings[] = {
    {"stablehlo.constant", lowerConstant},
    {"stablehlo.composite", lowerComposite},
    {"stablehlo.optimization_barrier", forward},
    {"stablehlo.broadcast_in_dim", lowerBroadcast},
    {"stablehlo.reshape", lowerReshape},
    {"stablehlo.transpose", lowerTranspose},
    {"stablehlo.reverse", lowerReverse},
    {"stablehlo.iota", lowerIota},
    {"stablehlo.slice", lowerSlice},
    {"stablehlo.concatenate", lowerConcatenate},
    {"stablehlo.pad", lowerPad},
    {"stablehlo.dynamic_slice", lowerDynamicSlice},
    {"stablehlo.dynamic_update_slice", lowerDynamicUpdateSlice},
    {"stablehlo.gather", lowerGather},
    {"stablehlo.scatter", lowerScatter},
    {"stablehlo.dot_general", lowerDotGeneral},
    {"stablehlo.convolution", lowerConvolution},
    {"stablehlo.reduce", lowerReduce},
    {"stablehlo.reduce_window", lowerReduceWindow},
};

/// Emits an error and returns true unless `type` is a static tensor of floats or signless integers.
static bool refuseType(Operation *op, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape()) {
    op->emitError("expected tensors of static shape, found ")
        << type << "; export with fixed batch and sequence lengths";
    return true;
  }
  Type element = tensor.getElementType();
  if (isa<FloatType>(element) || element.isSignlessInteger())
    return false;
  op->emitError("expected floats or signed integers, found ")
      << type
      << (element.isUnsignedInteger() ? "; cast it to int32 in the model"
                                      : "; write the model on real numbers");
  return true;
}

HloResult LowerStablehloPass::lower(OpBuilder &b, Operation *op) {
  for (auto types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (refuseType(op, type))
        return failure();
  for (Type type : op->getResultTypes())
    if (!fitsElements(cast<ShapedType>(type).getShape()))
      return op->emitError("expected results of at most 2^48 elements, found ") << type;
  StringRef name = op->getName().getStringRef();
  for (auto [known, lowering] : lowerings)
    if (known == name)
      return op->getNumResults() == 0 ? HloResult(op->emitError("expected a result"))
                                      : lowering(b, op);
  if (name == "stablehlo.custom_call" && getWord(op, "call_target_name") == "Sharding")
    return forward(b, op);
  if (op->getNumResults() != 1)
    return SmallVector<Value>();
  FailureOr<Value> value = lowerElementwise(b, op, op->getOperands(), op->getResult(0).getType());
  if (failed(value))
    return failure();
  if (!*value)
    return SmallVector<Value>();
  // Fold the op if its operands are constants. Indices that JAX computes from constants then become
  // constants, which the lowerings of later ops can read.
  SmallVector<Value> folded;
  if (Operation *last = value->getDefiningOp();
      last && succeeded(b.tryFold(last, folded)) && folded.size() == 1)
    return folded;
  return SmallVector<Value>{*value};
}

/// Replaces a select that is erfc(x) by the op `chlo.erfc`, which it returns.
static Operation *raiseErfc(Operation *select, Value x) {
  OpBuilder b(select);
  Operation *erfc =
      b.create(OperationState(select->getLoc(), "chlo.erfc", x, select->getResultTypes()));
  select->replaceAllUsesWith(erfc);
  select->erase();
  return erfc;
}

void LowerStablehloPass::runOnOperation() {
  unsigned errors = 0;
  Location firstPlace = getOperation().getLoc();
  SmallVector<Operation *> ops;
  // The lowering of an op with regions also lowers the ops in its regions.
  getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isHlo(op))
      return WalkResult::advance();
    if (ops.empty())
      firstPlace = op->getLoc();
    ops.push_back(op);
    return WalkResult::skip();
  });
  // Preserve all analyses to skip the verifier, which would reject unknown dialects without advice.
  if (ops.empty())
    return markAllAnalysesPreserved();
  // Begin with the last select, so that an erfc is matched before the selects in its branches.
  for (Operation *&op : llvm::reverse(ops))
    if (op->getName().getStringRef() == "stablehlo.select")
      if (Value x = matchErfc(op)) {
        op = raiseErfc(op, x);
        ++numErfc;
      }
  for (Operation *op : ops) {
    OpBuilder b(op);
    HloResult values = lower(b, op);
    if (failed(values) && ++errors == 8)
      break;
    if (failed(values) || values->empty())
      continue;
    op->replaceAllUsesWith(*values);
    op->erase();
    ++numLowered;
  }
  if (errors)
    return signalPassFailure();
  if (!getOperation()->hasAttr(numStopGradientsAttr))
    emitWarning(firstPlace,
                "StableHLO does not record stop_gradient and custom_vjp, so the compiler "
                "differentiates the forward as it is written")
            .attachNote()
        << "if the loss uses one of them, export it with fsdp_mlir.export_jax, which keeps "
           "stop_gradient";
}
