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
//  1. Visit every generic that yields a quotient, a product with a reciprocal, or an exponential,
//     and read the formula of one element of its result (Points.h). The formula may be computed by
//     any number of generics.
//  2. Match exp(x - m) / s, exp(x - (m + log(s))) or exp((x - m) - log(s)), where m is the maximum
//     of x, and s is the sum of exp(x - m), over one dimension. Conversions between float types may
//     occur anywhere in the formula.
//  3. If x is itself z - max(z), replace x by z.
//  4. torch's _safe_softmax is `select(row is all -inf, 0, softmax(x))`. Drop the select if the
//     mask provably keeps an element in every row.
//
// Conversions to a narrower type inside the formula are dropped, because linalg.softmax computes in
// f32 or wider. The results of linalg.softmax and of the matched ops differ only because
// linalg.softmax does not round values to the narrower type.
//
// Later passes erase the matched ops if nothing else reads them.
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

/// Returns whether the point is a conversion of a scalar between float types of at least 16 bits.
/// Returns false for a conversion to fewer than 16 bits. Such a conversion must not be skipped,
/// because the rounding is part of the model.
static bool isConversion(const Point &point) {
  if (!point.op<arith::ExtFOp>() && !point.op<arith::TruncFOp>())
    return false;
  Operation *op = point.value.getDefiningOp();
  return op->getOperand(0).getType().getIntOrFloatBitWidth() >= 16 &&
         op->getResult(0).getType().getIntOrFloatBitWidth() >= 16;
}

/// Follows a point to its definition with settle() of Points.h, and skips conversions on the way.
static Point settleThroughCasts(const Point &from) {
  Point point = settle(from);
  while (isConversion(point))
    point = settle(operandOf(point, 0));
  return point;
}

/// Returns the element that the term of a reduction reads, if the body of the reduction only
/// converts this element between float types.
static Point readThroughCasts(Point point) {
  while (isConversion(point))
    point = operandOf(point, 0);
  return readElement(point);
}

static bool equalButCasts(const Point &a, const Point &b) {
  return equal(settleThroughCasts(a), settleThroughCasts(b));
}

/// Returns numerator and denominator of `a / b` or `a * (1 / b)`.
static std::optional<std::pair<Point, Point>> matchQuotient(const Point &root) {
  if (root.op<arith::DivFOp>())
    return std::pair(settleThroughCasts(operandOf(root, 0)),
                     settleThroughCasts(operandOf(root, 1)));
  if (!root.op<arith::MulFOp>())
    return std::nullopt;
  for (unsigned i : {0, 1}) {
    Point reciprocal = settleThroughCasts(operandOf(root, i));
    if (reciprocal.op<arith::DivFOp>() && constantAt(operandOf(reciprocal, 0)) == 1.0)
      return std::pair(settleThroughCasts(operandOf(root, 1 - i)),
                       settleThroughCasts(operandOf(reciprocal, 1)));
  }
  return std::nullopt;
}

/// Skips conversions and fsdp.stop_gradient ops. An fsdp.stop_gradient may be skipped only in the
/// maximum of a row, because a softmax does not depend on the maximum that is subtracted.
static Point settleThroughStops(const Point &from) {
  Point point = settleThroughCasts(from);
  while (auto stop =
             point.isTensor() ? point.value.getDefiningOp<StopGradientOp>() : StopGradientOp())
    point = settleThroughCasts({stop.getInput(), point.at});
  return point;
}

/// Returns m if `point` is select(|m| is infinite, 0, m) or select(|m| is finite, m, 0). Otherwise
/// returns `point`. The log-sum-exp of torch and of JAX contains this select as a guard. Its result
/// differs from m only where m is infinite.
static Point withoutGuard(const Point &point) {
  if (!point.op<arith::SelectOp>())
    return point;
  for (unsigned i : {1, 2}) {
    Point kept = settleThroughStops(operandOf(point, i)), condition = settle(operandOf(point, 0));
    bool keptWhenTrue = i == 1;
    while (condition.op<arith::XOrIOp>() && constantAt(operandOf(condition, 1)) == 1.0) {
      keptWhenTrue = !keptWhenTrue;
      condition = settle(operandOf(condition, 0));
    }
    auto cmp = condition.op<arith::CmpFOp>();
    if (!cmp || constantAt(operandOf(point, 3 - i)) != 0.0)
      continue;
    using P = arith::CmpFPredicate;
    bool compares = llvm::is_contained(keptWhenTrue ? ArrayRef{P::ONE, P::UNE, P::OLT, P::ULT}
                                                    : ArrayRef{P::OEQ, P::UEQ, P::OGE, P::UGE},
                                       cmp.getPredicate());
    std::optional<double> bound = constantAt(operandOf(condition, 1));
    Point magnitude = settleThroughCasts(operandOf(condition, 0));
    if (compares && bound && std::isinf(*bound) && *bound > 0 && magnitude.op<math::AbsFOp>() &&
        equal(settleThroughStops(operandOf(magnitude, 0)), kept))
      return kept;
  }
  return point;
}

/// Matches the maximum of a row. The match skips fsdp.stop_gradient, max(m, -inf), and the guard
/// against infinities that withoutGuard() describes.
static std::optional<Reduction> matchRowMax(Point point) {
  point = withoutGuard(settleThroughStops(point));
  if (point.op<arith::MaximumFOp>() || point.op<arith::MaxNumFOp>())
    for (unsigned i : {0, 1})
      if (std::optional<double> bound = constantAt(operandOf(point, i));
          bound && std::isinf(*bound) && *bound < 0)
        point = settleThroughStops(operandOf(point, 1 - i));
  return matchReduction(point, Reduction::Max);
}

/// `x` is the element at `dims` of some tensor. If `max` is the maximum of this tensor over
/// dimension `dim`, returns the tensor. Returns null otherwise.
static Value matchShifted(const Point &x, const Point &max, ArrayRef<AffineExpr> dims,
                          unsigned dim) {
  auto row = matchRowMax(max);
  if (!row || row->symbols.size() != 1)
    return nullptr;
  Point maxed = substitute(row->term, row->symbols[0], dims[dim]);
  // The model may compute the maximum of fsdp.stop_gradient(x) instead of the maximum of x.
  if (!equalButCasts(maxed, x))
    maxed = settleThroughStops(maxed);
  Point element = readThroughCasts(maxed);
  if (!equalButCasts(maxed, x) || !element.isTensor() || element.at != dims)
    return nullptr;
  return element.value;
}

namespace {
/// The parts of a formula that equals exp(x - max) / sum.
struct Parts {
  Point x, max, sum;
};
} // namespace

/// Matches exp(x - max) / sum.
static std::optional<Parts> splitQuotient(const Point &root) {
  auto quotient = matchQuotient(root);
  if (!quotient || !quotient->first.op<math::ExpOp>())
    return std::nullopt;
  Point shifted = settleThroughCasts(operandOf(quotient->first, 0));
  if (!shifted.op<arith::SubFOp>())
    return std::nullopt;
  return Parts{operandOf(shifted, 0), operandOf(shifted, 1), quotient->second};
}

/// Matches exp(x - (max + log(sum))) or exp((x - max) - log(sum)).
static std::optional<Parts> splitExponential(const Point &root) {
  if (!root.op<math::ExpOp>())
    return std::nullopt;
  Point shifted = settleThroughCasts(operandOf(root, 0));
  if (!shifted.op<arith::SubFOp>())
    return std::nullopt;
  Point x = settleThroughCasts(operandOf(shifted, 0)),
        lse = settleThroughCasts(operandOf(shifted, 1));
  auto sumOf = [](const Point &log) {
    Point sum = settleThroughCasts(operandOf(log, 0));
    // JAX computes the absolute value of the sum. This has no effect, because the sum is positive.
    return sum.op<math::AbsFOp>() ? settleThroughCasts(operandOf(sum, 0)) : sum;
  };
  if (lse.op<math::LogOp>() && x.op<arith::SubFOp>())
    return Parts{operandOf(x, 0), operandOf(x, 1), sumOf(lse)};
  if (!lse.op<arith::AddFOp>())
    return std::nullopt;
  for (unsigned i : {0, 1})
    if (Point log = settleThroughCasts(operandOf(lse, i)); log.op<math::LogOp>())
      return Parts{operandOf(shifted, 0), operandOf(lse, 1 - i), sumOf(log)};
  return std::nullopt;
}

static std::optional<Softmax> matchSoftmax(linalg::GenericOp op) {
  if (!isParallel(op) || op->getNumResults() != 1 || !op.getIndexingMapsArray().back().isIdentity())
    return std::nullopt;
  SmallVector<AffineExpr> dims;
  for (unsigned d = 0; d < op.getNumLoops(); ++d)
    dims.push_back(getAffineDimExpr(d, op.getContext()));
  Point root{op.getBody()->getTerminator()->getOperand(0), dims};
  while (isConversion(root))
    root = operandOf(root, 0);
  std::optional<Parts> parts = splitQuotient(root);
  if (!parts)
    parts = splitExponential(root);
  auto sum = parts ? matchReduction(parts->sum, Reduction::Sum) : std::nullopt;
  if (!sum || sum->symbols.size() != 1)
    return std::nullopt;
  // Find the one dimension that the sum does not keep.
  Softmax softmax{nullptr, 0};
  unsigned missing = 0;
  for (unsigned d = 0; d < dims.size(); ++d)
    if (!llvm::is_contained(parts->sum.at, dims[d])) {
      softmax.dim = d;
      ++missing;
    }
  if (missing != 1)
    return std::nullopt;
  Point term = settleThroughCasts(substitute(sum->term, sum->symbols[0], dims[softmax.dim]));
  if (!term.op<math::ExpOp>())
    return std::nullopt;
  // The two occurrences of the maximum must also have the same stop_gradient ops. Otherwise their
  // gradients do not cancel.
  Point shifted = settleThroughCasts(operandOf(term, 0));
  if (!shifted.op<arith::SubFOp>() || !equalButCasts(operandOf(shifted, 0), parts->x) ||
      !equalButCasts(operandOf(shifted, 1), parts->max))
    return std::nullopt;
  softmax.source = matchShifted(parts->x, parts->max, dims, softmax.dim);
  // If the source is z - max(z), continue with z, because softmax(z - max(z)) equals softmax(z).
  while (softmax.source) {
    Point inner = settleThroughCasts({softmax.source, dims});
    Value unshifted =
        inner.op<arith::SubFOp>()
            ? matchShifted(operandOf(inner, 0), operandOf(inner, 1), dims, softmax.dim)
            : Value();
    if (!unshifted)
      return softmax;
    softmax.source = unshifted;
  }
  return std::nullopt;
}

/// Returns whether `part` has a causal mask, that is, whether `part` is `select(column <= row, x,
/// constant)` or a sum with an addend of this form. Such a mask keeps at least one element of every
/// row. A row extends along the last dimension.
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

/// Converts the elements of a tensor to type `element`.
static Value convert(OpBuilder &b, Location loc, Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  Type own = type.getElementType();
  if (own == element)
    return value;
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), element);
  AffineMap all = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location l, ValueRange a) {
    Value v = own.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth()
                  ? Value(arith::ExtFOp::create(b, l, element, a[0]))
                  : Value(arith::TruncFOp::create(b, l, element, a[0]));
    linalg::YieldOp::create(b, l, v);
  };
  return linalg::GenericOp::create(b, loc, empty.getType(), value, empty, ArrayRef{all, all}, loops,
                                   body)
      .getResult(0);
}

/// Builds the softmax in the type of its input or the type of `result`, whichever is wider.
static Value build(OpBuilder &b, Location loc, const Softmax &softmax, RankedTensorType result) {
  Type from = getElementTypeOrSelf(softmax.source.getType()), to = result.getElementType();
  Type wide = from == to                                                  ? from
              : from.getIntOrFloatBitWidth() > to.getIntOrFloatBitWidth() ? from
              : from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth() ? to
                                                                          : Type(b.getF32Type());
  Value source = convert(b, loc, softmax.source, wide);
  Value empty = tensor::EmptyOp::create(b, loc, result.getShape(), wide);
  auto raised =
      linalg::SoftmaxOp::create(b, loc, TypeRange(result.clone(wide)), source, empty, softmax.dim);
  return convert(b, loc, raised.getResult()[0], to);
}

void RaiseSoftmaxPass::runOnOperation() {
  SmallVector<linalg::GenericOp> generics;
  getOperation().walk([&](linalg::GenericOp op) { generics.push_back(op); });
  for (linalg::GenericOp op : generics) {
    if (std::optional<Softmax> softmax = matchSoftmax(op)) {
      OpBuilder b(op);
      auto type = cast<RankedTensorType>(op->getResult(0).getType());
      op->getResult(0).replaceAllUsesWith(build(b, op.getLoc(), *softmax, type));
      ++numRaised;
    } else if (Value plain = matchSafeSoftmax(op)) {
      op->getResult(0).replaceAllUsesWith(plain);
      ++numGuards;
    }
  }
}
