//===- IdSets.cpp - Ranges as unions of intervals ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Some models pad or mask labels with a value that is not a valid id, such as -100, and replace
// this value by a valid id before the lookup. A union of intervals, unlike one interval, can
// represent the range of such labels:
//
//   %p = pad %labels with -100             [0, 256) or -100
//   %k = cmpi ne, %p, -100
//   %s = select %k, %p, 0                  [0, 256)
//
//  1. The set of a padding, a concatenation or a select is the union of the sets of the inputs.
//  2. The condition of a select may compare the element that a branch yields (or the sum of this
//     element and a constant) with a constant. In this case, the branch contributes only the values
//     for which the select chooses the branch. The comparison may be in another body (Points.h).
//
// A set has at most 4 intervals. If a set would have more intervals, the intervals with the
// smallest gaps between them are merged. The time is O(1) per value.
//
//===----------------------------------------------------------------------===//

#include "Lookups/IdRanges.h"
#include "Structure/Points.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t lowest = std::numeric_limits<int64_t>::min(),
                         highest = std::numeric_limits<int64_t>::max();
static constexpr unsigned maxIntervals = 4;

/// Sorts intervals and merges intervals that touch. Merges intervals with the smallest gaps until
/// at most maxIntervals are left.
static IdSet normalise(IdSet set) {
  llvm::sort(set, [](IntegerRange a, IntegerRange b) {
    return std::pair(a.lo, a.hi) < std::pair(b.lo, b.hi);
  });
  IdSet merged;
  for (IntegerRange next : set) {
    bool touches =
        !merged.empty() && (merged.back().hi == highest || next.lo <= merged.back().hi + 1);
    if (touches)
      merged.back().hi = std::max(merged.back().hi, next.hi);
    else
      merged.push_back(next);
  }
  while (merged.size() > maxIntervals) {
    auto gap = [&](unsigned i) {
      return static_cast<uint64_t>(merged[i + 1].lo) - static_cast<uint64_t>(merged[i].hi);
    };
    unsigned best = 0;
    for (unsigned i = 1; i + 1 < merged.size(); ++i)
      best = gap(i) < gap(best) ? i : best;
    merged[best].hi = merged[best + 1].hi;
    merged.erase(merged.begin() + best + 1);
  }
  return merged;
}

static IdSet unite(IdSet a, const IdSet &b) {
  llvm::append_range(a, b);
  return normalise(std::move(a));
}

static IdSet intersect(const IdSet &a, const IdSet &b) {
  IdSet both;
  for (IntegerRange x : a)
    for (IntegerRange y : b)
      if (IntegerRange z{std::max(x.lo, y.lo), std::min(x.hi, y.hi)}; z.lo <= z.hi)
        both.push_back(z);
  return normalise(std::move(both));
}

/// Returns the values that are not in `set`.
static IdSet complement(const IdSet &set) {
  IdSet rest;
  int64_t next = lowest;
  for (IntegerRange x : set) {
    if (x.lo > next)
      rest.push_back({next, x.lo - 1});
    if (x.hi == highest)
      return rest;
    next = x.hi + 1;
  }
  rest.push_back({next, highest});
  return rest;
}

/// Returns the values x for which `x predicate c` holds.
static IdSet valuesWith(arith::CmpIPredicate predicate, int64_t c) {
  using P = arith::CmpIPredicate;
  IdSet all{{lowest, highest}}, below;
  switch (predicate) {
  case P::eq:
    return {IntegerRange::of(c)};
  case P::slt:
    return c == lowest ? IdSet() : IdSet{{lowest, c - 1}};
  case P::sle:
    return {{lowest, c}};
  // An unsigned comparison treats negative numbers as greater than all other numbers.
  case P::ult:
    return c < 0 ? all : c == 0 ? IdSet() : IdSet{{0, c - 1}};
  case P::ule:
    return c < 0 ? all : IdSet{{0, c}};
  case P::uge:
  case P::ugt:
    if (c < 0)
      return all;
    [[fallthrough]];
  case P::ne:
  case P::sge:
  case P::sgt:
    return complement(valuesWith(arith::invertPredicate(predicate), c));
  }
  return all;
}

/// Returns the predicate q for which `x q c` equals `c predicate x`.
static arith::CmpIPredicate swapSides(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::slt:
    return P::sgt;
  case P::sle:
    return P::sge;
  case P::sgt:
    return P::slt;
  case P::sge:
    return P::sle;
  case P::ult:
    return P::ugt;
  case P::ule:
    return P::uge;
  case P::ugt:
    return P::ult;
  case P::uge:
    return P::ule;
  default:
    return predicate;
  }
}

/// Follows a point back through casts that do not change the value of the integer.
static Point withoutCasts(Point point) {
  point = settle(point);
  while (!point.isTensor() &&
         isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(point.value.getDefiningOp()) &&
         !point.value.getDefiningOp()->getOperand(0).getType().isInteger(1))
    point = settle(operandOf(point, 0));
  return point;
}

/// Adds `offset` to each value, saturating at the limits of i64. Does not shift a bound that equals
/// a limit of i64, because this bound means that the range has none.
static IdSet shift(IdSet set, int64_t offset) {
  auto move = [&](int64_t x) {
    int64_t moved;
    if (x == lowest || x == highest)
      return x;
    return llvm::AddOverflow(x, offset, moved) ? (offset < 0 ? lowest : highest) : moved;
  };
  for (IntegerRange &x : set)
    x = {move(x.lo), move(x.hi)};
  return normalise(std::move(set));
}

namespace {
/// The sum of an element and a constant.
struct Sum {
  Point base;
  int64_t offset = 0;
};
} // namespace

/// Returns a base and a constant whose sum is the element. Splits no sum that may overflow.
static Sum decompose(const Point &point, IdRanges &ranges) {
  Sum sum{withoutCasts(point)};
  for (unsigned steps = 0; steps < 4; ++steps) {
    auto add = sum.base.op<arith::AddIOp>();
    if (!add && !sum.base.op<arith::SubIOp>())
      return sum;
    unsigned side = add && ranges.get(settle(operandOf(sum.base, 0)).value).isSingle() ? 1 : 0;
    IntegerRange constant = ranges.get(settle(operandOf(sum.base, 1 - side)).value);
    Point base = withoutCasts(operandOf(sum.base, side));
    IntegerRange range = ranges.get(base.value), moved;
    int64_t offset = add ? constant.lo : -constant.hi, total;
    Type type = getElementTypeOrSelf(sum.base.value.getType());
    int64_t half = type.isIndex() || type.getIntOrFloatBitWidth() >= 64
                       ? 0
                       : int64_t(1) << (type.getIntOrFloatBitWidth() - 1);
    bool isKnown = constant.isSingle() && constant.lo != lowest &&
                   !llvm::AddOverflow(range.lo, offset, moved.lo) &&
                   !llvm::AddOverflow(range.hi, offset, moved.hi) &&
                   (!half || moved.within(-half, half - 1)) &&
                   !llvm::AddOverflow(sum.offset, offset, total);
    if (!isKnown)
      return sum;
    sum = {base, total};
  }
  return sum;
}

/// Returns the values of `x` for which `condition` may have the truth value `holds`. Returns all
/// values if the condition does not test `x`.
static IdSet valuesUnder(const Point &condition, bool holds, const Point &x, IdRanges &ranges,
                         unsigned depth = 0) {
  IdSet all{{lowest, highest}};
  Point p = settle(condition);
  if (depth > 8 || p.isTensor())
    return all;
  if (auto cmp = p.op<arith::CmpIOp>()) {
    for (unsigned side : {0, 1}) {
      IntegerRange other = ranges.get(settle(operandOf(p, 1 - side)).value);
      if (!other.isSingle() || cmp.getLhs().getType().isInteger(1))
        continue;
      Sum compared = decompose(operandOf(p, side), ranges);
      if (!equal(compared.base, x) || compared.offset == lowest)
        continue;
      auto predicate = side == 0 ? cmp.getPredicate() : swapSides(cmp.getPredicate());
      return shift(valuesWith(holds ? predicate : arith::invertPredicate(predicate), other.lo),
                   -compared.offset);
    }
    return all;
  }
  if (holds ? static_cast<bool>(p.op<arith::AndIOp>()) : static_cast<bool>(p.op<arith::OrIOp>()))
    return intersect(valuesUnder(operandOf(p, 0), holds, x, ranges, depth + 1),
                     valuesUnder(operandOf(p, 1), holds, x, ranges, depth + 1));
  if (p.op<arith::XOrIOp>() && p.value.getType().isInteger(1) &&
      ranges.get(settle(operandOf(p, 1)).value).within(1, 1))
    return valuesUnder(operandOf(p, 0), !holds, x, ranges, depth + 1);
  return all;
}

/// Returns the values of `set` that the branch `branch` of a select can have if the condition has
/// the truth value `holds`.
static IdSet refine(IdSet set, const Point &condition, bool holds, const Point &branch,
                    IdRanges &ranges) {
  Sum sum = decompose(branch, ranges);
  IdSet under =
      intersect(ranges.getSet(sum.base.value), valuesUnder(condition, holds, sum.base, ranges));
  return intersect(set, shift(std::move(under), sum.offset));
}

IdSet IdRanges::computeSelect(arith::SelectOp op) {
  IntegerRange condition = get(op.getCondition());
  auto generic = dyn_cast<linalg::GenericOp>(op->getParentOp());
  Point here{op.getCondition(), {}};
  for (unsigned d = 0; generic && d < generic.getNumLoops(); ++d)
    here.at.push_back(getAffineDimExpr(d, op.getContext()));
  auto branch = [&](Value value, bool holds) -> IdSet {
    if (condition.isSingle() && (condition.lo != 0) != holds)
      return {};
    IdSet set = getSet(value);
    if (!generic || !isa<IntegerType, IndexType>(value.getType()))
      return set;
    return refine(std::move(set), here, holds, {value, here.at}, *this);
  };
  return unite(branch(op.getTrueValue(), true), branch(op.getFalseValue(), false));
}

IdSet IdRanges::getSet(Value value) {
  if (auto it = sets.find(value); it != sets.end())
    return it->second;
  IdSet set = isa<IntegerType, IndexType>(getElementTypeOrSelf(value.getType())) ? computeSet(value)
                                                                                 : IdSet();
  if (set.empty())
    set = {IntegerRange()}; // unknown or unreachable
  sets[value] = set;
  return set;
}

IdSet IdRanges::computeSet(Value value) {
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto structured = dyn_cast<linalg::LinalgOp>(arg.getOwner()->getParentOp());
    if (structured && (arg.getArgNumber() < structured.getNumDpsInputs() ||
                       structured.getNumReductionLoops() == 0))
      return getSet(structured->getOperand(arg.getArgNumber()));
    return {get(value)};
  }
  Operation *op = value.getDefiningOp();
  auto all = [&](ValueRange values) {
    IdSet set;
    for (Value each : values)
      // Skip tensor.empty: its elements are not read (RefuseUnwritten.cpp).
      if (!each.getDefiningOp<tensor::EmptyOp>())
        set = unite(std::move(set), getSet(each));
    return set;
  };
  return llvm::TypeSwitch<Operation *, IdSet>(op)
      .Case([&](arith::SelectOp select) { return computeSelect(select); })
      .Case([&](tensor::PadOp pad) {
        Value with = pad.getConstantPaddingValue();
        return with ? all({pad.getSource(), with}) : IdSet();
      })
      .Case([&](tensor::ConcatOp concat) { return all(concat.getInputs()); })
      .Case(
          [&](tensor::InsertSliceOp insert) { return all({insert.getSource(), insert.getDest()}); })
      .Case([&](linalg::FillOp fill) { return getSet(fill.getInputs()[0]); })
      .Case([&](linalg::GenericOp generic) -> IdSet {
        if (generic.getNumReductionLoops() != 0)
          return {get(value)};
        return getSet(generic.getBody()->getTerminator()->getOperand(
            cast<OpResult>(value).getResultNumber()));
      })
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp, tensor::CastOp,
            tensor::ExtractOp, tensor::SplatOp>([&](auto) { return getSet(op->getOperand(0)); })
      .Case<arith::IndexCastOp, arith::ExtSIOp>([&](auto) -> IdSet {
        IntegerRange hull = get(value);
        // A cast that truncates, or that extends i1, changes the range.
        IdSet set = getSet(op->getOperand(0));
        return set.front().lo == hull.lo && set.back().hi == hull.hi ? set : IdSet{hull};
      })
      .Default([&](Operation *) -> IdSet { return {get(value)}; });
}
