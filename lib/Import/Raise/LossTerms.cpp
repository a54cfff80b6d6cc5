//===- LossTerms.cpp - Matching of cross-entropy terms ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   -0.5 · select(t == -100, 0, log_softmax(x)[row, t])  ->  x, t, factor 0.5, ignore -100
//
// Matches a term of a loss in which t is the target of a row:
//
//  1. Strip signs, constant factors, `select(t == ignore_index, 0, ..)` and inner sums over rows.
//  2. Match the remaining formula with the log-probability of the target, which is the element at
//     [row, t] of log_softmax(x), or the negated element at [row, t] of logsumexp(x) - x.
//  3. Accept two ways to read the element at t: a tensor.extract, or a sum of products with `t ==
//     column` (one-hot).
//
//===----------------------------------------------------------------------===//

#include "Raise/LossTerms.h"
#include "Structure/CaptureOperands.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Follows a point back through casts between integer types.
static Point stripIntegerCasts(Point point) {
  for (;;) {
    point = settle(point);
    Operation *op = point.isTensor() ? nullptr : point.value.getDefiningOp();
    if (!isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp, arith::ExtUIOp,
                         arith::IndexCastUIOp>(op))
      return point;
    point = operandOf(point, 0);
  }
}

/// Matches log(Σ_v exp(z)). Returns z with `column` in place of the index v.
static std::optional<Point> matchLogSumExp(const Point &point, AffineExpr column) {
  Point log = settle(point);
  if (!log.op<math::LogOp>())
    return std::nullopt;
  auto sum = matchReduction(operandOf(log, 0), Reduction::Sum);
  if (!sum || sum->symbols.size() != 1)
    return std::nullopt;
  Point term = settle(substitute(sum->term, sum->symbols[0], column));
  if (!term.op<math::ExpOp>())
    return std::nullopt;
  return operandOf(term, 0);
}

/// Returns x if z has the form x - m, where m does not depend on the class. Returns z otherwise.
static Point withoutShift(const Point &z, AffineExpr column) {
  Point p = settle(z);
  if (p.op<arith::SubFOp>() && !dependsOn(operandOf(p, 1), column))
    return operandOf(p, 0);
  return z;
}

/// Returns x if the point has one of two forms of log_softmax(x). The first form is
/// z - log Σ exp(z), where z is x or x - m. The second form is x - (log Σ exp(x - m) + m). In both
/// forms, m does not depend on the class.
static std::optional<Point> matchLogSoftmax(const Point &point, AffineExpr column) {
  Point p = settle(point);
  if (!p.op<arith::SubFOp>())
    return std::nullopt;
  Point z = operandOf(p, 0);
  if (auto inner = matchLogSumExp(operandOf(p, 1), column); inner && equal(*inner, z))
    return withoutShift(z, column);
  Point lse = settle(operandOf(p, 1));
  if (!lse.op<arith::AddFOp>())
    return std::nullopt;
  for (unsigned i : {0, 1}) {
    auto inner = matchLogSumExp(operandOf(lse, i), column);
    Point shifted = inner ? settle(*inner) : Point{z};
    if (inner && shifted.op<arith::SubFOp>() && equal(operandOf(shifted, 0), z) &&
        equal(operandOf(shifted, 1), operandOf(lse, 1 - i)))
      return z;
  }
  return std::nullopt;
}

/// Matches `tensor[rows.., t]`. Returns the point of the element `tensor[rows.., column]`, and the
/// point of t.
static std::optional<std::pair<Point, Point>> matchPick(const Point &point, AffineExpr column) {
  auto extract = point.op<tensor::ExtractOp>();
  if (!extract || extract.getIndices().empty())
    return std::nullopt;
  Point element{extract.getTensor(), {}};
  std::optional<Point> target;
  for (Value index : extract.getIndices()) {
    if (AffineExpr expr = affineIndex(index)) {
      element.at.push_back(expr.replaceDims(point.at));
      continue;
    }
    if (target)
      return std::nullopt;
    target = stripIntegerCasts({index, point.at});
    element.at.push_back(column);
  }
  if (!target)
    return std::nullopt;
  return std::pair(element, *target);
}

/// Matches `t == column`, where column is a loop of a sum. Returns t and the affine symbol of the
/// column.
static std::optional<std::pair<Point, AffineExpr>> matchOneHot(const Point &condition) {
  Point p = settle(condition);
  auto cmp = p.op<arith::CmpIOp>();
  if (!cmp || cmp.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  for (unsigned i : {0, 1}) {
    Point side = stripIntegerCasts(operandOf(p, i));
    if (auto index = side.op<linalg::IndexOp>())
      if (isa_and_nonnull<AffineSymbolExpr>(side.at[index.getDim()]))
        return std::pair(stripIntegerCasts(operandOf(p, 1 - i)), side.at[index.getDim()]);
  }
  return std::nullopt;
}

bool fsdp::matchIgnore(const Point &condition, int64_t &value, bool &equals, Point &target) {
  Point p = settle(condition);
  auto cmp = p.op<arith::CmpIOp>();
  if (!cmp)
    return false;
  equals = cmp.getPredicate() == arith::CmpIPredicate::eq;
  if (!equals && cmp.getPredicate() != arith::CmpIPredicate::ne)
    return false;
  std::optional<double> constant = constantAt(operandOf(p, 1));
  if (!constant)
    return false;
  value = static_cast<int64_t>(*constant);
  target = stripIntegerCasts(operandOf(p, 0));
  return true;
}

/// Returns t if `target` is `select(t != ignore, t, constant)`. Such a select is a guard that keeps
/// lookups of ignored rows in range. Otherwise returns `target`.
static Point withoutSafeguard(Point target, std::optional<int64_t> ignore) {
  int64_t value;
  bool equals;
  Point asked;
  if (!ignore || !target.op<arith::SelectOp>() ||
      !matchIgnore(operandOf(target, 0), value, equals, asked) || value != *ignore ||
      !constantAt(operandOf(target, equals ? 1 : 2)))
    return target;
  Point kept = stripIntegerCasts(operandOf(target, equals ? 2 : 1));
  return equal(kept, asked) ? kept : target;
}

namespace {
/// Reads a term of the sum, beginning with the outermost op of its formula, until it finds the
/// log-probability.
class TermReader {
public:
  TermReader(Point term, ArrayRef<AffineExpr> symbols)
      : point(term), column(getAffineDimExpr(0, term.value.getContext())) {
    loss.rows.assign(symbols.begin(), symbols.end());
  }

  std::optional<Loss> read() {
    for (unsigned layer = 0; layer < 64; ++layer) {
      point = settle(point);
      if (readPick() || readDifference() || readOneHot())
        return ignored && !equal(*ignored, loss.target) ? std::nullopt : std::optional(loss);
      if (!peelSum() && !peelFactor() && !peelIgnore())
        return std::nullopt;
    }
    return std::nullopt;
  }

private:
  /// If the point is a sum over rows or over the columns of a one-hot, continues with the sum's
  /// term.
  bool peelSum() {
    auto sum = matchReduction(point, Reduction::Sum);
    if (!sum)
      return false;
    loss.rows.append(sum->symbols);
    point = sum->term;
    return true;
  }

  /// If the point is a negation or has a constant factor, continues with the operand.
  bool peelFactor() {
    if (point.op<arith::NegFOp>()) {
      loss.factor = -loss.factor;
      point = operandOf(point, 0);
      return true;
    }
    bool divides = static_cast<bool>(point.op<arith::DivFOp>());
    if (!divides && !point.op<arith::MulFOp>())
      return false;
    for (unsigned i : {1, 0}) {
      std::optional<double> c = divides && i == 0 ? std::nullopt : constantAt(operandOf(point, i));
      if (!c || *c == 0)
        continue;
      loss.factor = divides ? loss.factor / *c : loss.factor * *c;
      point = operandOf(point, 1 - i);
      return true;
    }
    return false;
  }

  /// If the point is select(t == ignore_index, 0, x) or select(t != ignore_index, x, 0), continues
  /// with x.
  bool peelIgnore() {
    int64_t value;
    bool equals;
    Point target;
    if (ignored || !point.op<arith::SelectOp>() ||
        !matchIgnore(operandOf(point, 0), value, equals, target) ||
        constantAt(operandOf(point, equals ? 1 : 2)) != 0.0)
      return false;
    ignored = target;
    loss.ignore = value;
    point = operandOf(point, equals ? 2 : 1);
    return true;
  }

  /// Matches log_softmax(x)[row, t].
  bool readPick() {
    auto pick = matchPick(point, column);
    auto x = pick ? matchLogSoftmax(pick->first, column) : std::nullopt;
    if (!x)
      return false;
    finish(*x, withoutSafeguard(pick->second, loss.ignore), -1);
    return true;
  }

  /// Matches logsumexp(x)[row] - x[row, t]. The two operands may contain x - m instead of x, with
  /// the same m.
  bool readDifference() {
    if (!point.op<arith::SubFOp>())
      return false;
    auto pick = matchPick(settle(operandOf(point, 1)), column);
    if (!pick)
      return false;
    const Point &picked = pick->first; // x, or x - m
    if (auto inner = matchLogSumExp(operandOf(point, 0), column); inner && equal(*inner, picked)) {
      bool isShifted = static_cast<bool>(settle(picked).op<arith::SubFOp>());
      finish(isShifted ? withoutShift(picked, column) : picked,
             withoutSafeguard(pick->second, loss.ignore), 1);
      return true;
    }
    Point lse = settle(operandOf(point, 0));
    for (unsigned i = 0; i < 2 && lse.op<arith::AddFOp>(); ++i) {
      auto shifted = matchLogSumExp(operandOf(lse, i), column);
      Point z = shifted ? settle(*shifted) : lse;
      if (shifted && z.op<arith::SubFOp>() && equal(operandOf(z, 0), picked) &&
          equal(operandOf(z, 1), operandOf(lse, 1 - i))) {
        finish(picked, withoutSafeguard(pick->second, loss.ignore), 1);
        return true;
      }
    }
    return false;
  }

  /// Matches a term of Σ_v select(t == v, log_softmax(x), 0) or Σ_v (t == v) · log_softmax(x).
  bool readOneHot() {
    Point hot, kept;
    if (point.op<arith::SelectOp>() && constantAt(operandOf(point, 2)) == 0.0) {
      hot = operandOf(point, 0);
      kept = operandOf(point, 1);
      return finishOneHot(matchOneHot(hot), kept);
    }
    for (unsigned i = 0; i < 2 && point.op<arith::MulFOp>(); ++i) {
      hot = settle(operandOf(point, i));
      bool isSelect = hot.op<arith::SelectOp>() && constantAt(operandOf(hot, 1)) == 1.0 &&
                      constantAt(operandOf(hot, 2)) == 0.0;
      if (isSelect || hot.op<arith::UIToFPOp>())
        hot = operandOf(hot, 0);
      if (finishOneHot(matchOneHot(hot), operandOf(point, 1 - i)))
        return true;
    }
    return false;
  }

  bool finishOneHot(std::optional<std::pair<Point, AffineExpr>> oneHot, Point kept) {
    if (!oneHot)
      return false;
    double sign = -1;
    kept = settle(kept);
    if (kept.op<arith::NegFOp>()) {
      sign = 1;
      kept = operandOf(kept, 0);
    }
    auto x = matchLogSoftmax(kept, oneHot->second);
    if (!x)
      return false;
    llvm::erase(loss.rows, oneHot->second);
    finish(substitute(*x, oneHot->second, column), oneHot->first, sign);
    return true;
  }

  void finish(const Point &x, Point target, double sign) {
    loss.logits = readElement(x);
    loss.target = target;
    loss.factor *= sign;
  }

  Point point;
  AffineExpr column; // affine dimension that indexes the classes (symbols index the rows)
  Loss loss;
  std::optional<Point> ignored;
};
} // namespace

std::optional<Loss> fsdp::readLoss(Point term, ArrayRef<AffineExpr> symbols) {
  return TermReader(term, symbols).read();
}
