//===- RaiseSoftmax.cpp - Raise chains to linalg.softmax --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %m = max over d1 of %x                    %y = linalg.softmax dimension(1) ins(%x)
//   %e = exp(%x - %m[d0])              ->
//   %s = sum over d1 of %e
//   %y = %e / %s[d0]
//
//  1. For every generic that yields a quotient, or a product with 1 / s, read the formula of one
//     element (Points.h). The formula does not depend on how the chain is divided into generics.
//  2. Match: the denominator is the sum of the numerator over one dimension, the numerator is
//     exp(x - m), and m is the maximum of x over that dimension.
//  3. torch's _safe_softmax is `select(row is all -inf, 0, softmax(x))`. Drop the select if the
//     mask provably keeps an element in every row.
//
// Not done here: erasing the chain; later clean-up passes do, if nothing else reads it.
//
//===----------------------------------------------------------------------===//

#include "Structure/Points.h"
#include "Structure/Structured.h"
#include "fsdp/IR/StopGradient.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

namespace mlir::fsdp {
#define GEN_PASS_DEF_RAISESOFTMAXPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct RaiseSoftmaxPass : public fsdp::impl::RaiseSoftmaxPassBase<RaiseSoftmaxPass> {
  using RaiseSoftmaxPassBase::RaiseSoftmaxPassBase;
  void runOnOperation() override;
};

/// softmax(source) over `dim`.
struct Softmax {
  Value source;
  unsigned dim;
};
} // namespace

/// Returns numerator and denominator of `a / b` or `a * (1 / b)`.
static std::optional<std::pair<Point, Point>> matchQuotient(const Point &root) {
  if (root.op<arith::DivFOp>())
    return std::pair(settle(operandOf(root, 0)), settle(operandOf(root, 1)));
  if (!root.op<arith::MulFOp>())
    return std::nullopt;
  for (unsigned i : {0, 1}) {
    Point reciprocal = settle(operandOf(root, i));
    if (reciprocal.op<arith::DivFOp>() && constantAt(operandOf(reciprocal, 0)) == 1.0)
      return std::pair(settle(operandOf(root, 1 - i)), settle(operandOf(reciprocal, 1)));
  }
  return std::nullopt;
}

/// Skips fsdp.stop_gradient ops. Valid only for the maximum of a row, because a softmax does not
/// depend on that shift.
static Point settleThroughStops(const Point &from) {
  Point point = settle(from);
  while (auto stop =
             point.isTensor() ? point.value.getDefiningOp<StopGradientOp>() : StopGradientOp())
    point = settle({stop.getInput(), point.at});
  return point;
}

/// Matches the maximum of a row, also as max(m, -inf) and as the input of fsdp.stop_gradient.
static std::optional<Reduction> matchRowMax(Point point) {
  point = settleThroughStops(point);
  if (point.op<arith::MaximumFOp>() || point.op<arith::MaxNumFOp>())
    for (unsigned i : {0, 1})
      if (std::optional<double> bound = constantAt(operandOf(point, i));
          bound && std::isinf(*bound) && *bound < 0)
        point = settleThroughStops(operandOf(point, 1 - i));
  return matchReduction(point, Reduction::Max);
}

static std::optional<Softmax> matchSoftmax(linalg::GenericOp op) {
  if (!isParallel(op) || op->getNumResults() != 1 || !op.getIndexingMapsArray().back().isIdentity())
    return std::nullopt;
  SmallVector<AffineExpr> dims;
  for (unsigned d = 0; d < op.getNumLoops(); ++d)
    dims.push_back(getAffineDimExpr(d, op.getContext()));
  Point root{op.getBody()->getTerminator()->getOperand(0), dims};
  auto quotient = matchQuotient(root);
  if (!quotient)
    return std::nullopt;
  auto [numerator, denominator] = *quotient;
  auto sum = matchReduction(denominator, Reduction::Sum);
  if (!sum || sum->symbols.size() != 1 || !numerator.op<math::ExpOp>())
    return std::nullopt;
  // Find the one dimension that the sum does not keep.
  Softmax softmax{nullptr, 0};
  unsigned missing = 0;
  for (unsigned d = 0; d < dims.size(); ++d)
    if (!llvm::is_contained(denominator.at, dims[d])) {
      softmax.dim = d;
      ++missing;
    }
  if (missing != 1 || !equal(substitute(sum->term, sum->symbols[0], dims[softmax.dim]), numerator))
    return std::nullopt;

  Point shifted = settle(operandOf(numerator, 0));
  if (!shifted.op<arith::SubFOp>())
    return std::nullopt;
  auto max = matchRowMax(operandOf(shifted, 1));
  if (!max || max->symbols.size() != 1)
    return std::nullopt;
  Point maxed = substitute(max->term, max->symbols[0], dims[softmax.dim]),
        whole = operandOf(shifted, 0);
  if (!equal(maxed, whole)) // the maximum may be over a stop_gradient of x
    maxed = settleThroughStops(maxed);
  Point element = readElement(maxed);
  if (!equal(maxed, whole) || !element.isTensor() || element.at != dims)
    return std::nullopt;
  softmax.source = element.value;
  return softmax;
}

/// Returns whether `part` is a causal mask, `select(column <= row, x, constant)`, or a sum with
/// such an addend. Every row (over the last dimension) of the tensor then keeps an element.
static bool keepsDiagonal(const Point &element, const Point &part) {
  Point p = settle(part);
  if (p.op<arith::AddFOp>()) // an additive mask
    return keepsDiagonal(element, operandOf(p, 0)) || keepsDiagonal(element, operandOf(p, 1));
  auto select = p.op<arith::SelectOp>();
  if (!select)
    return false;
  Point condition = settle(operandOf(p, 0));
  auto cmp = condition.op<arith::CmpIOp>();
  if (!cmp || !constantAt(operandOf(p, 2)))
    return false;
  auto loopOf = [&](unsigned i) -> AffineExpr {
    Point side = settle(operandOf(condition, i));
    while (
        isa_and_nonnull<arith::IndexCastOp>(side.isTensor() ? nullptr : side.value.getDefiningOp()))
      side = settle(operandOf(side, 0));
    auto index = side.op<linalg::IndexOp>();
    return index ? side.at[index.getDim()] : AffineExpr();
  };
  AffineExpr column = element.at.back(), row = element.at[element.at.size() - 2];
  AffineExpr lhs = loopOf(0), rhs = loopOf(1);
  using P = arith::CmpIPredicate;
  if (lhs == column && rhs == row)
    return llvm::is_contained({P::sle, P::ule}, cmp.getPredicate());
  if (lhs == row && rhs == column)
    return llvm::is_contained({P::sge, P::uge}, cmp.getPredicate());
  return false;
}

/// Matches select(row is all -inf, 0, softmax(x)) if x has a causal mask, so that no row is all
/// -inf. Returns the result of the softmax.
static Value matchSafeSoftmax(linalg::GenericOp op) {
  if (!isParallel(op) || op->getNumResults() != 1)
    return nullptr;
  SmallVector<AffineExpr> dims;
  for (unsigned d = 0; d < op.getNumLoops(); ++d)
    dims.push_back(getAffineDimExpr(d, op.getContext()));
  Point root{op.getBody()->getTerminator()->getOperand(0), dims};
  if (!root.op<arith::SelectOp>() || !op.getIndexingMapsArray().back().isIdentity())
    return nullptr;
  for (unsigned i : {1, 2}) {
    Point kept = readElement(operandOf(root, i));
    auto softmax = kept.isTensor() ? kept.value.getDefiningOp<linalg::SoftmaxOp>() : nullptr;
    if (!softmax || kept.at != dims || constantAt(operandOf(root, 3 - i)) != 0.0 ||
        softmax.getDimension() + 1 != dims.size() || dims.size() < 2)
      continue;
    // The condition must be computed from the input of the softmax.
    Point source{softmax.getInput(), dims};
    bool reads = false;
    SetVector<Value> sources;
    sources.insert(readElement(operandOf(root, 0)).value);
    for (unsigned n = 0; n < sources.size() && n < 16; ++n) {
      reads |= sources[n] == softmax.getInput();
      if (Operation *producer = sources[n].getDefiningOp();
          producer && sources[n] != softmax.getInput())
        sources.insert(producer->operand_begin(), producer->operand_end());
    }
    if (reads && keepsDiagonal(source, source))
      return softmax.getResult()[0];
  }
  return nullptr;
}

void RaiseSoftmaxPass::runOnOperation() {
  SmallVector<linalg::GenericOp> generics;
  getOperation().walk([&](linalg::GenericOp op) { generics.push_back(op); });
  for (linalg::GenericOp op : generics) {
    if (std::optional<Softmax> softmax = matchSoftmax(op)) {
      OpBuilder b(op);
      auto type = cast<RankedTensorType>(op->getResult(0).getType());
      Value empty = tensor::EmptyOp::create(b, op.getLoc(), type.getShape(), type.getElementType());
      auto raised = linalg::SoftmaxOp::create(b, op.getLoc(), TypeRange(type), softmax->source,
                                              empty, softmax->dim);
      op->getResult(0).replaceAllUsesWith(raised.getResult()[0]);
      ++numRaised;
    } else if (Value plain = matchSafeSoftmax(op)) {
      op->getResult(0).replaceAllUsesWith(plain);
      ++numGuards;
    }
  }
}
