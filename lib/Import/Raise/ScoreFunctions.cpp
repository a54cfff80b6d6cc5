//===- ScoreFunctions.cpp - Masks and scale of an attention formula -------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Splits the formula of the softmax's input into a scale, a score_mod and a mask_mod. In the
// example, x is an element of Q·Kᵀ:
//
//   softmax(max(select(c, x · 0.125 + t[h, q, k], -3e38) + select(d, 0, -inf), -3e38))
//
//   scale 0.125    score_mod { s + t[h, i, j] }    mask_mod { c and d }
//
//  1. Walk from the softmax to the product, and collect the masks. With a score s and a condition
//     c, a mask has one of the forms `select(c, s, low)`, `s + select(c, 0, low)` and `s + t`,
//     where t is a constant table whose elements are 0 or low. The product of `low` and the
//     constant factors between the mask and the softmax must be at most -1e4. `max(s, low)` (or
//     `select(s > low, s, low)`) is dropped if only masked scores can be less than low. The walk
//     skips other additions, casts and positive constant factors.
//  2. Walk from the product to the softmax. The scale is the product of the constant factors at the
//     beginning of the walk. Between these factors, there may only be masks and float conversions.
//  3. Write the rest of the formula into the regions (WriteScoreFunctions.cpp).
//  4. A sink becomes the last key. For it, score_mod yields the sink, and mask_mod yields true.
//
// A mask with a finite number is accepted only if every row provably keeps a key. If a row were
// fully masked, the model would compute a mean of the rows of V, but attention with a mask_mod
// would compute 0. The finite number cannot remain in score_mod either: the gradient of a fully
// masked row could then not be computed from the log-sum-exp.
//
//===----------------------------------------------------------------------===//

#include "Raise/ScoreFunctions.h"
#include "Raise/Surroundings.h"
#include "Structure/Structured.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

/// If `bound` is at most this value, max(s, bound) changes only masked scores. (The least f16
/// number is -65504.)
static constexpr double clamped = -6e4;

ScoreFunctions::ScoreFunctions(AttentionMatch &match, ArrayRef<SmallVector<unsigned>> indices,
                               bool assumeKeys)
    : m(match), indices(indices.begin(), indices.end()), assumeKeys(assumeKeys),
      scale(match.scale) {
  peelMasks();
  peelScale();
}

ScoreFunctions::Key ScoreFunctions::keyOf(const Point &point) const {
  return {point.value, AffineMap::get(m.parts.size(), 0, point.at, point.value.getContext())};
}

/// Returns whether `value` is the result of an elementwise op that computes math functions of
/// floats and does not depend on the score. A kernel should not recompute the elements of
/// `value` for each score.
static bool isExpensive(Value value, Operation *scoring) {
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  return generic && isParallel(generic) && !leadsTo(value, scoring) &&
         llvm::any_of(generic.getBody()->without_terminator(), [](Operation &op) {
           return isa_and_nonnull<math::MathDialect>(op.getDialect()) &&
                  isa<FloatType>(op.getResult(0).getType());
         });
}

/// Follows a point back through copies, bodies and views.
Point ScoreFunctions::settle(Point point) {
  for (unsigned steps = 0; steps < 256; ++steps) {
    if (point.isTensor() &&
        (point.value.getDefiningOp() == m.scoring || isExpensive(point.value, m.scoring)))
      break;
    std::optional<LoopParts::Split> needed;
    std::optional<Point> next = step(point);
    if (!next)
      next = m.parts.throughReshape(point, needed);
    if (!next)
      break;
    point = *next;
  }
  return point;
}

/// Returns whether the formula of a point contains an element of Q·Kᵀ.
bool ScoreFunctions::holdsScore(const Point &point) {
  Point p = settle(point);
  if (p.isTensor())
    return p.value.getDefiningOp() == m.scoring;
  auto [it, fresh] = scored.try_emplace(keyOf(p), false);
  if (!fresh)
    return it->second;
  Operation *op = p.value.getDefiningOp();
  bool holds = false;
  for (unsigned i = 0, e = op ? op->getNumOperands() : 0; i < e && !isa<tensor::ExtractOp>(op); ++i)
    holds |= holdsScore(operandOf(p, i));
  return scored[keyOf(p)] = holds;
}

std::optional<double> ScoreFunctions::constantOf(const Point &point) {
  Point p = settle(point);
  return p.isTensor() && !uniformConstant(p.value) ? std::nullopt : constantAt(p);
}

/// If exactly one operand of the point's op contains the score, returns the number of this operand.
/// Returns nothing otherwise.
std::optional<unsigned> ScoreFunctions::scoredOperand(const Point &point) {
  Operation *op = point.isTensor() ? nullptr : point.value.getDefiningOp();
  std::optional<unsigned> found;
  for (unsigned i = 0, e = op ? op->getNumOperands() : 0; i < e; ++i)
    if (holdsScore(operandOf(point, i))) {
      if (found)
        return std::nullopt;
      found = i;
    }
  return found;
}

/// Records a mask if one branch of `select` is its operand number `kept` (or, if `kept` is empty,
/// the constant 0), and `factor` times the other branch is at most `masked`. In this case, the
/// operand number `rest` of the op `outer` replaces `outer`.
bool ScoreFunctions::addMask(const Point &select, std::optional<unsigned> kept, double factor,
                             const Point &outer, unsigned rest) {
  if (!select.op<arith::SelectOp>() || holdsScore(operandOf(select, 0)))
    return false;
  for (unsigned i : {1, 2}) {
    if (kept ? *kept != i : constantOf(operandOf(select, i)) != 0.0)
      continue;
    std::optional<double> other = constantOf(operandOf(select, 3 - i));
    if (!other || !(*other * factor <= masked))
      continue;
    masks.push_back({operandOf(select, 0), i == 2});
    (std::isinf(*other) ? passed : passedFinite)[keyOf(outer)] = rest;
    return true;
  }
  return false;
}

/// Records a mask if `table` is an element of a constant table that masks scores (classifyTable()).
/// The operand `rest` of the addition `outer` then replaces the addition.
bool ScoreFunctions::addTable(const Point &table, double factor, const Point &outer,
                              unsigned rest) {
  MaskTable kind = table.isTensor() ? classifyTable(table.value, factor) : MaskTable::None;
  if (kind == MaskTable::None)
    return false;
  masks.push_back({table, /*negated=*/false, /*isNumber=*/true});
  (kind == MaskTable::Infinite ? passed : passedFinite)[keyOf(outer)] = rest;
  return true;
}

/// If a point is the maximum of a constant and a value that depends on the score, returns the
/// operand number of this value, and the constant. The point may also be a comparison and a select,
/// which exporters write for torch.max.
std::optional<std::pair<unsigned, double>> ScoreFunctions::lowerBound(const Point &point) {
  if (point.op<arith::MaximumFOp>() || point.op<arith::MaxNumFOp>()) {
    std::optional<unsigned> inner = scoredOperand(point);
    std::optional<double> bound =
        inner ? constantOf(operandOf(point, 1 - *inner)) : std::optional<double>();
    return bound ? std::optional(std::pair(*inner, *bound)) : std::nullopt;
  }
  if (!point.op<arith::SelectOp>())
    return std::nullopt;
  Point condition = settle(operandOf(point, 0));
  auto cmp = condition.op<arith::CmpFOp>();
  if (!cmp)
    return std::nullopt;
  using P = arith::CmpFPredicate;
  bool isGreater = llvm::is_contained({P::OGT, P::OGE, P::UGT, P::UGE}, cmp.getPredicate());
  if (!isGreater && !llvm::is_contained({P::OLT, P::OLE, P::ULT, P::ULE}, cmp.getPredicate()))
    return std::nullopt;
  auto same = [&](Point a, Point b) {
    a = settle(a), b = settle(b);
    std::optional<double> constant = constantOf(a);
    return constant ? constant == constantOf(b)
                    : a.isTensor() == b.isTensor() && keyOf(a) == keyOf(b);
  };
  // Operand number `inner` of the comparison depends on the score.
  for (unsigned inner : {0, 1}) {
    // `x > c ? x : c` and `c < x ? x : c` yield x if the condition holds.
    unsigned scored = isGreater == (inner == 0) ? 1 : 2;
    std::optional<double> bound = constantOf(operandOf(condition, 1 - inner));
    if (bound && holdsScore(operandOf(condition, inner)) &&
        same(operandOf(condition, inner), operandOf(point, scored)) &&
        same(operandOf(condition, 1 - inner), operandOf(point, 3 - scored)))
      return std::pair(scored, *bound);
  }
  return std::nullopt;
}

void ScoreFunctions::peelMasks() {
  Point point = m.formula;
  double outside = 1; // product of the factors between the softmax and the point
  for (unsigned steps = 0; steps < 64; ++steps) {
    point = settle(point);
    if (std::optional<std::pair<unsigned, double>> bounded = lowerBound(point);
        bounded && bounded->second * outside <= clamped) {
      (std::isinf(bounded->second) ? passed : passedFinite)[keyOf(point)] = bounded->first;
      point = operandOf(point, bounded->first);
      continue;
    }
    std::optional<unsigned> inner = scoredOperand(point);
    if (!inner)
      return;
    auto other = [&]() { return operandOf(point, 1 - *inner); };
    if (point.op<arith::SelectOp>()) {
      if (!addMask(point, *inner, outside, point, *inner))
        return;
    } else if (point.op<arith::AddFOp>()) {
      Point added = settle(other());
      if (!addMask(added, std::nullopt, outside, point, *inner))
        // If the addend is neither a select nor a table that masks, it remains in score_mod.
        addTable(added, outside, point, *inner);
    } else if (point.op<arith::MulFOp>() || (point.op<arith::DivFOp>() && *inner == 0)) {
      std::optional<double> factor = constantOf(other());
      if (!factor || !(*factor > 0) || !std::isfinite(*factor))
        return;
      outside = point.op<arith::DivFOp>() ? outside / *factor : outside * *factor;
    } else if (!point.op<arith::ExtFOp>() && !point.op<arith::TruncFOp>() &&
               !(point.op<arith::SubFOp>() && *inner == 0)) {
      return;
    }
    point = operandOf(point, *inner);
  }
}

void ScoreFunctions::peelScale() {
  SmallVector<std::pair<Point, unsigned>> path; // ops from the softmax to the product
  Point point = settle(m.formula);
  while (!point.isTensor()) {
    std::optional<unsigned> inner = scoredOperand(point);
    if (!inner || path.size() > 64)
      return;
    path.push_back({point, *inner});
    point = settle(operandOf(point, *inner));
  }
  for (auto &[at, inner] : llvm::reverse(path)) {
    bool divides = at.op<arith::DivFOp>() && inner == 0;
    if (at.op<arith::ExtFOp>() || at.op<arith::TruncFOp>() || passed.contains(keyOf(at)) ||
        passedFinite.contains(keyOf(at)))
      continue; // skip a mask, which does not change a score that it keeps
    std::optional<double> factor =
        divides || at.op<arith::MulFOp>() ? constantOf(operandOf(at, 1 - inner)) : std::nullopt;
    if (!factor || !std::isfinite(*factor) || (divides && *factor == 0))
      return;
    scale = divides ? scale / *factor : scale * *factor;
    passed[keyOf(at)] = inner;
  }
}
