//===- ScoreFunctions.cpp - A formula as functions of attention -----------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   softmax(max(select(c, x · 0.125 + t[h, q, k], -3e38) + select(d, 0, -inf), -3e38))
//
//   scale 0.125    score_mod { s + t[h, i, j] }    mask_mod { c and d }
//
//  1. From the softmax inwards: selects of a very negative number, and additions of such a
//     select between it and 0, are masks and left out; so is a lower bound that only masked
//     scores reach. Additions without the score, casts and positive factors stand aside.
//  2. From the product outwards: constant factors are the scale.
//  3. What is left is written into the regions (WriteScoreFunctions.cpp).
//  4. Numbers as low as masked ones, but finite, are taken only where each row has a key of a usual
//     score for sure. (A row of them alone is a mean over V; by the log-sum-exp of such a row no
//     gradient can be computed.)
//
//===----------------------------------------------------------------------===//

#include "Raise/ScoreFunctions.h"
#include "Structure/Structured.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

/// A lower bound of this or less holds masked scores only: the least of f16, and of wider floats.
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

//===----------------------------------------------------------------------===//
// Taking the formula apart
//===----------------------------------------------------------------------===//

/// An elementwise op without the score that a kernel should not repeat for each score.
static bool isDear(Value value, Operation *scoring) {
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  return generic && isParallel(generic) && !leadsTo(value, scoring) &&
         llvm::any_of(generic.getBody()->without_terminator(), [](Operation &op) {
           return isa_and_nonnull<math::MathDialect>(op.getDialect());
         });
}

/// After copies, bodies and views.
Point ScoreFunctions::settle(Point point) {
  for (unsigned steps = 0; steps < 256; ++steps) {
    if (point.isTensor() &&
        (point.value.getDefiningOp() == m.scoring || isDear(point.value, m.scoring)))
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

/// `select` keeps its operand `kept` (not given: the one that is 0) and is very negative else:
/// then `outer` is left out, for its operand `rest`.
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

void ScoreFunctions::peelMasks() {
  Point point = m.formula;
  double outside = 1; // what stands in front of the point on the way
  for (unsigned steps = 0; steps < 64; ++steps) {
    point = settle(point);
    std::optional<unsigned> inner = scoredOperand(point);
    if (!inner)
      return;
    auto other = [&]() { return operandOf(point, 1 - *inner); };
    if (point.op<arith::SelectOp>()) {
      if (!addMask(point, *inner, outside, point, *inner))
        return;
    } else if (point.op<arith::AddFOp>()) {
      addMask(settle(other()), std::nullopt, outside, point, *inner); // or another addend
    } else if (point.op<arith::MaximumFOp>() || point.op<arith::MaxNumFOp>()) {
      std::optional<double> bound = constantOf(other());
      if (!bound || !(*bound * outside <= clamped))
        return;
      (std::isinf(*bound) ? passed : passedFinite)[keyOf(point)] = *inner;
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
  SmallVector<std::pair<Point, unsigned>> path; // from the softmax to the product
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
    if (at.op<arith::ExtFOp>() || at.op<arith::TruncFOp>())
      continue;
    std::optional<double> factor =
        divides || at.op<arith::MulFOp>() ? constantOf(operandOf(at, 1 - inner)) : std::nullopt;
    if (!factor || !std::isfinite(*factor) || (divides && *factor == 0))
      return;
    scale = divides ? scale / *factor : scale * *factor;
    passed[keyOf(at)] = inner;
  }
}
