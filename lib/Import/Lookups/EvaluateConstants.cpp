//===- EvaluateConstants.cpp - Compute indices of constants -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Some indices, such as buckets of relative positions, depend on no input, but IntegerRange.h
// cannot bound them because they contain a rounded logarithm. This pass computes the values of
// these indices.
//
//   generic outs(..) {                          %t = constant dense<[..]> : tensor<32x32xi64>
//     %d = %j - %i                              generic ins(%t) outs(..) {
//     %b = fptosi(log(%d) · 3.7)          ->    ^bb0(%b: i64, ..):
//     tensor.extract %bias[%b, %h] }              tensor.extract %bias[%b, %h] }
//
//  1. Visit every index of a tensor.extract in a generic, if the index is not known to be in range.
//     The index is computed from other integer values. Walk back from the index, and stop at the
//     first values that depend only on constants and loop indices.
//  2. Compute these values for all points of the loops that they depend on (ConstantEvaluator.h).
//  3. If the computed values have a smaller range than the range that IntegerRange.h derives, make
//     them a constant input of the generic.
//
// The pass does not replace affine functions of loops, or integers whose range is already
// sufficient, because later passes read these values as positions. Masks remain comparisons.
//
//===----------------------------------------------------------------------===//

#include "Lookups/ConstantEvaluator.h"
#include "Lookups/IdRanges.h"
#include "Structure/CaptureOperands.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_EVALUATECONSTANTSPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// A value of a body that depends on no input.
struct Found {
  Value value;
  ConstantValue constant;
};

/// Finds the values in the body of one generic that become constant inputs.
struct Finder {
  linalg::GenericOp op;
  ConstantEvaluator &evaluator;
  IdRanges ranges;
  llvm::SmallPtrSet<void *, 16> seen;
  SmallVector<Found> found;

  void find(Value value);
};

struct EvaluateConstantsPass : public fsdp::impl::EvaluateConstantsPassBase<EvaluateConstantsPass> {
  using EvaluateConstantsPassBase::EvaluateConstantsPassBase;
  void runOnOperation() override;

private:
  void replace(tensor::ExtractOp extract, const Found &found);
};
} // namespace

static IntegerRange rangeOf(const ConstantTable &table) {
  IntegerRange range = IntegerRange::of(table.elements.front().integer);
  for (const Scalar &element : table.elements)
    range = join(range, IntegerRange::of(element.integer));
  return range;
}

/// Walks back from `value` and stops at values that depend only on constants and loop indices.
/// Collects each of these values that has a smaller range than IntegerRange.h derives for it.
void Finder::find(Value value) {
  while (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(value.getDefiningOp()))
    // Look through casts, because checks next to the lookup also read the value before the cast.
    value = value.getDefiningOp()->getOperand(0);
  if (!seen.insert(value.getAsOpaquePointer()).second)
    return;
  bool isId = isa<IntegerType, IndexType>(value.getType()) && !value.getType().isInteger(1);
  if (isId) {
    IntegerRange range = ranges.get(value);
    if (range.isSingle() || affineIndex(value))
      return;
    std::optional<ConstantValue> constant = evaluator.get(op, value);
    if (constant) {
      IntegerRange computed = rangeOf(constant->table);
      if (computed.within(range) && !range.within(computed))
        found.push_back({value, std::move(*constant)});
      return;
    }
  }
  Operation *source = value.getDefiningOp();
  if (source && source->getBlock() == op.getBody() && !isa<tensor::ExtractOp>(source))
    for (Value operand : source->getOperands())
      find(operand);
}

/// Rebuilds the generic around `extract`, so that the value `found` becomes an input of the
/// generic.
void EvaluateConstantsPass::replace(tensor::ExtractOp extract, const Found &found) {
  auto op = cast<linalg::GenericOp>(extract->getParentOp());
  IRRewriter b(op);
  Location loc = op.getLoc();
  Type type = found.value.getType(), element = type.isIndex() ? b.getI64Type() : type;
  auto tableType = RankedTensorType::get(found.constant.table.shape, element);
  SmallVector<APInt> elements;
  for (const Scalar &number : found.constant.table.elements)
    elements.push_back(APInt(element.getIntOrFloatBitWidth(), number.integer, /*isSigned=*/true,
                             /*implicitTrunc=*/true));
  Value table =
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(tableType, ArrayRef(elements)));
  SmallVector<AffineExpr> loops;
  for (int64_t loop : found.constant.loops)
    loops.push_back(b.getAffineDimExpr(loop));
  AffineMap map = AffineMap::get(op.getNumLoops(), 0, loops, &getContext());
  Value captured = found.value;
  // The new input is i64, so cast it to index.
  if (type.isIndex()) {
    b.setInsertionPointToStart(op.getBody());
    captured = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
    Value cast = arith::IndexCastOp::create(b, loc, type, captured);
    b.replaceAllUsesWith(found.value, cast);
  }
  b.setInsertionPoint(op);
  addInput(op, table, map, captured, b);
  ++numEvaluated;
}

void EvaluateConstantsPass::runOnOperation() {
  ConstantEvaluator evaluator;
  SmallVector<tensor::ExtractOp> extracts;
  getOperation().walk([&](tensor::ExtractOp op) {
    if (isa<linalg::GenericOp>(op->getParentOp()))
      extracts.push_back(op);
  });
  for (tensor::ExtractOp extract : extracts) {
    Finder finder{cast<linalg::GenericOp>(extract->getParentOp()), evaluator, {}, {}, {}};
    auto shape = cast<RankedTensorType>(extract.getTensor().getType()).getShape();
    for (auto [index, extent] : llvm::zip_equal(extract.getIndices(), shape))
      if (!finder.ranges.get(index).within(IntegerRange::below(extent)))
        finder.find(index);
    for (const Found &one : finder.found)
      replace(extract, one);
    // Drop the cache, because its keys are addresses, and new ops may have the same addresses.
    if (!finder.found.empty())
      evaluator = ConstantEvaluator();
  }
}
