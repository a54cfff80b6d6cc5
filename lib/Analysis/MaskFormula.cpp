//===- MaskFormula.cpp - A mask as comparisons of integers ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %a = cmpi sge, %q, %k                        q - k >= 0
//   %d = subi %q, %k ; %w = cmpi ult, %d, 256    q - k >= 0  and  255 - q + k >= 0
//   %m = andi %a, %w                        ->   all three conditions
//
// 1. Each integer of mask_mod is converted to a tree (TileExpr.h) over q, k, b and h. Trees
//    represent sums, products with constants, divisions and remainders by constants, minima, maxima
//    and selects. The result of any other op, and a result that may wrap, is represented by a leaf
//    of a tree. A leaf is a Scalar if its value depends on neither q nor k. Any other leaf is
//    Opaque, which means that only its range is known.
// 2. Each comparison is converted to conditions of the form `tree >= 0`, for example a >= b to a -
//    b >= 0. An unsigned comparison is converted to two conditions if an operand may be negative.
// 3. A condition on a minimum is split into a conjunction: min(x, y) + c >= 0 becomes x + c >= 0
//    and y + c >= 0. Conditions on maxima and selects are split similarly. A negation of a formula
//    is replaced by negations of its conditions.
//
//===----------------------------------------------------------------------===//

#include "MaskFormula.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;
using P = arith::CmpIPredicate;
using Kind = TileExpr::Kind;

RegionDependence::RegionDependence(Region &function) {
  if (function.empty())
    return;
  // The arguments are, in order, [cotangent,] [score,] b, h, q, k, and the captured tensors.
  Block &body = function.front();
  unsigned floats = 0;
  while (floats < body.getNumArguments() && isa<FloatType>(body.getArgument(floats).getType()))
    classes[body.getArgument(floats++)] = Dependence::Both;
  classes[body.getArgument(floats + 2)] = Dependence::Row;
  classes[body.getArgument(floats + 3)] = Dependence::Column;
  for (Operation &op : body)
    for (Value result : op.getResults())
      classes[result] = of(&op);
}

Dependence RegionDependence::of(Operation *op) const {
  Dependence joined = Dependence::None;
  for (Value operand : op->getOperands())
    joined = joined | of(operand);
  return joined;
}

MaskFormula MaskFormula::join(Kind kind, MaskFormula a, MaskFormula b) {
  assert((kind == And || kind == Or) && "expected a way to join");
  bool isAnd = kind == And;
  for (MaskFormula *part : {&a, &b})
    if (part->kind == (isAnd ? False : True))
      return of(!isAnd);
  if (a.kind == (isAnd ? True : False))
    return b;
  if (b.kind == (isAnd ? True : False))
    return a;
  MaskFormula joined{kind, {}};
  for (MaskFormula *part : {&a, &b})
    if (part->kind == kind)
      std::move(part->parts.begin(), part->parts.end(), std::back_inserter(joined.parts));
    else
      joined.parts.push_back(std::move(*part));
  return joined;
}

/// Returns the range of a type, clamped to ±TileExpr::limit.
static IntegerRange typeRange(Type type) {
  IntegerRange range = IntegerRange::ofType(type);
  return {std::max(range.lo, -TileExpr::limit), std::min(range.hi, TileExpr::limit)};
}

/// Returns true for a scalar or data that may have been clamped to ±TileExpr::far.
static bool isLong(const TileExpr &e) {
  return (e.kind() == Kind::Scalar || e.kind() == Kind::Opaque) &&
         (e.range().lo <= -TileExpr::far || e.range().hi >= TileExpr::far);
}

MaskReader::MaskReader(Region &function, ArrayRef<int64_t> extents)
    : function(function), dependence(function) {
  using Symbol = TileExpr::Symbol;
  static constexpr Symbol symbols[] = {Symbol::Batch, Symbol::Head, Symbol::Row, Symbol::Column};
  for (auto [symbol, extent] : llvm::zip_equal(symbols, extents))
    position.push_back(TileExpr::symbol(symbol, IntegerRange::below(extent)));
}

/// Returns a leaf (Scalar or Opaque) for a value of which only the range is known.
TileExpr MaskReader::leaf(Value value, IntegerRange range) {
  return dependence.of(value) == Dependence::None ? TileExpr::scalar(value, range)
                                                  : TileExpr::opaque(value, range);
}

/// Returns a tree whose value is 1 if `condition` holds, and else 0. Returns null if `condition`
/// consists of several conditions or is unknown.
static TileExpr asNumber(const MaskFormula &condition) {
  TileExpr one = TileExpr::constant(1), zero = TileExpr::constant(0);
  if (condition.kind == MaskFormula::True || condition.kind == MaskFormula::False)
    return condition.kind == MaskFormula::True ? one : zero;
  return condition.kind == MaskFormula::Atom ? TileExpr::choose(condition.atom, one, zero)
                                             : TileExpr();
}

TileExpr MaskReader::readInteger(Value value) {
  if (!value.getType().isIntOrIndex())
    return {};
  if (auto it = known.find(value); it != known.end())
    return it->second;
  TileExpr expr = value.getType().isInteger(1) ? asNumber(read(value)) : compute(value);
  IntegerRange bound = typeRange(value.getType());
  // Replace the tree by a leaf if the tree may wrap or contains a 64-bit scalar.
  auto readsLong = [&](TileExpr e) { return isLong(e) && e.value() != value; };
  if (!expr || !expr.range().within(bound) || expr.contains(readsLong))
    expr = leaf(value, bound);
  return known[value] = expr;
}

static std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)) || constant.getSignificantBits() > 60)
    return std::nullopt;
  return value.getType().isInteger(1) ? static_cast<int64_t>(constant.getZExtValue())
                                      : constant.getSExtValue();
}

TileExpr MaskReader::compute(Value value) {
  if (std::optional<int64_t> constant = constantOf(value))
    return TileExpr::constant(*constant);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    unsigned first = 0;
    while (isa<FloatType>(function.getArgument(first).getType()))
      ++first;
    return position[argument.getArgNumber() - first];
  }
  Operation *op = value.getDefiningOp();
  auto in = [&](unsigned i) { return readInteger(op->getOperand(i)); };
  auto natural = [&](unsigned i) {
    TileExpr x = in(i);
    return x && x.range().lo >= 0 ? x : TileExpr();
  };
  auto by = [&]() { return constantOf(op->getOperand(1)).value_or(0); };
  bool isBool = op->getNumOperands() && op->getOperand(0).getType().isInteger(1);
  return llvm::TypeSwitch<Operation *, TileExpr>(op)
      .Case<arith::ExtSIOp, arith::IndexCastOp>([&](auto) { return isBool ? in(0) * -1 : in(0); })
      .Case([&](arith::TruncIOp) { return in(0); })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](auto) { return natural(0); })
      .Case([&](arith::AddIOp) { return in(0) + in(1); })
      .Case([&](arith::SubIOp) { return in(0) - in(1); })
      .Case([&](arith::MulIOp) -> TileExpr {
        for (unsigned i : {0, 1})
          if (TileExpr factor = in(i); factor && factor.asConstant())
            return in(1 - i) * *factor.asConstant();
        return {};
      })
      .Case([&](arith::ShLIOp) {
        return by() >= 0 && by() < 60 ? in(0) * (int64_t(1) << by()) : TileExpr();
      })
      .Case<arith::FloorDivSIOp>([&](auto) { return in(0).floorDiv(by()); })
      .Case<arith::CeilDivSIOp>([&](auto) { return in(0).ceilDiv(by()); })
      .Case<arith::DivSIOp, arith::DivUIOp>([&](auto) { return natural(0).floorDiv(by()); })
      .Case([&](arith::CeilDivUIOp) { return natural(0).ceilDiv(by()); })
      .Case([&](arith::ShRSIOp) {
        return by() >= 0 && by() < 60 ? in(0).floorDiv(int64_t(1) << by()) : TileExpr();
      })
      .Case([&](arith::ShRUIOp) {
        return by() >= 0 && by() < 60 ? natural(0).floorDiv(int64_t(1) << by()) : TileExpr();
      })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](auto) -> TileExpr {
        TileExpr x = natural(0);
        if (by() <= 0 || (!x && isa<arith::RemSIOp>(op)))
          return {};
        return x && x.range().hi < by() ? x : leaf(value, {0, by() - 1});
      })
      .Case<arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>([&](auto) -> TileExpr {
        bool isSigned = isa<arith::MinSIOp, arith::MaxSIOp>(op);
        TileExpr x = isSigned ? in(0) : natural(0), y = isSigned ? in(1) : natural(1);
        return isa<arith::MinSIOp, arith::MinUIOp>(op) ? TileExpr::min(x, y) : TileExpr::max(x, y);
      })
      .Case([&](math::AbsIOp) { return TileExpr::max(in(0), in(0) * -1); })
      // If x >= 0, x & y is in [0, x].
      .Case([&](arith::AndIOp) -> TileExpr {
        TileExpr x = natural(0), y = natural(1);
        if (!x && !y)
          return {};
        return leaf(value, {0, std::min((x ? x : y).range().hi, (y ? y : x).range().hi)});
      })
      .Case([&](arith::SelectOp select) -> TileExpr {
        TileExpr x = in(1), y = in(2);
        MaskFormula condition = read(select.getCondition());
        if (condition.kind == MaskFormula::True || condition.kind == MaskFormula::False)
          return condition.kind == MaskFormula::True ? x : y;
        if (!x || !y)
          return {};
        if (condition.kind == MaskFormula::Atom)
          return TileExpr::choose(condition.atom, x, y);
        return leaf(value, join(x.range(), y.range()));
      })
      .Default([](Operation *) { return TileExpr(); });
}

MaskFormula MaskReader::isNatural(TileExpr atom) {
  if (!atom || budget == 0)
    return MaskFormula::unknown();
  --budget;
  if (atom.range().lo >= 0 || atom.range().hi < 0)
    return MaskFormula::of(atom.range().lo >= 0);
  for (const auto &[factor, term] : atom.terms()) {
    if (term.kind() != Kind::Min && term.kind() != Kind::Max && term.kind() != Kind::Choose)
      continue;
    TileExpr rest = atom - term * factor;
    auto with = [&, factor = factor](TileExpr operand) {
      return isNatural(rest + operand * factor);
    };
    ArrayRef<TileExpr> operands = term.operands();
    if (term.kind() == Kind::Choose)
      return MaskFormula::join(
          MaskFormula::Or,
          MaskFormula::join(MaskFormula::And, isNatural(operands[0]), with(operands[1])),
          MaskFormula::join(MaskFormula::And, isNatural(operands[0] * -1 + -1), with(operands[2])));
    bool isAnd = (term.kind() == Kind::Min) == (factor > 0);
    return MaskFormula::join(isAnd ? MaskFormula::And : MaskFormula::Or, with(operands[0]),
                             with(operands[1]));
  }
  return {MaskFormula::Atom, atom};
}

MaskFormula MaskReader::compare(P predicate, TileExpr lhs, TileExpr rhs) {
  if (!lhs || !rhs)
    return MaskFormula::unknown();
  auto both = [&](P a, P b, MaskFormula::Kind kind) {
    return MaskFormula::join(kind, compare(a, lhs, rhs), compare(b, lhs, rhs));
  };
  auto fits = [](TileExpr e) { return e.range().lo >= 0; };
  switch (predicate) {
  case P::eq:
    return both(P::sle, P::sge, MaskFormula::And);
  case P::ne:
    return both(P::slt, P::sgt, MaskFormula::Or);
  case P::sge:
    return isNatural(lhs - rhs);
  case P::sgt:
    return isNatural(lhs - rhs + -1);
  case P::sle:
  case P::slt:
    return compare(predicate == P::sle ? P::sge : P::sgt, rhs, lhs);
  case P::ult:
  // As an unsigned number, a negative number is greater than every natural number.
  case P::ule: {
    P plain = predicate == P::ult ? P::slt : P::sle;
    TileExpr zero = TileExpr::constant(0);
    if (fits(rhs))
      return MaskFormula::join(MaskFormula::And, compare(P::sge, lhs, zero),
                               compare(plain, lhs, rhs));
    if (fits(lhs))
      return MaskFormula::join(MaskFormula::Or, compare(P::slt, rhs, zero),
                               compare(plain, lhs, rhs));
    return MaskFormula::unknown();
  }
  case P::ugt:
  case P::uge:
    return compare(predicate == P::uge ? P::ule : P::ult, rhs, lhs);
  }
  return MaskFormula::unknown();
}

MaskFormula MaskReader::compare(P predicate, Value lhs, Value rhs) {
  if (lhs.getType().isInteger(1)) {
    if (predicate != P::eq && predicate != P::ne)
      return MaskFormula::unknown();
    bool isEqual = predicate == P::eq;
    MaskFormula both = MaskFormula::join(MaskFormula::And, read(lhs), read(rhs, !isEqual));
    return MaskFormula::join(
        MaskFormula::Or, std::move(both),
        MaskFormula::join(MaskFormula::And, read(lhs, true), read(rhs, isEqual)));
  }
  // Allow a 64-bit scalar only if the other operand is small. A scalar outside [-far, far] is
  // clamped, but the sign of its difference to the other operand is still correct.
  TileExpr a = readInteger(lhs), b = readInteger(rhs);
  auto isFar = [](TileExpr e) { return e.kind() == Kind::Scalar && isLong(e); };
  IntegerRange small{-TileExpr::far / 2, TileExpr::far / 2};
  if (!a || !b || (isFar(a) && !b.range().within(small)) || (isFar(b) && !a.range().within(small)))
    return MaskFormula::unknown();
  return compare(predicate, a, b);
}

MaskFormula MaskReader::read(Value condition, bool negated) {
  if (budget == 0)
    return MaskFormula::unknown();
  --budget;
  if (std::optional<int64_t> constant = constantOf(condition))
    return MaskFormula::of((*constant != 0) != negated);
  MaskFormula formula = readOp(condition, negated);
  if (formula.kind == MaskFormula::Unknown && !formula.source) {
    formula.source = condition;
    formula.negated = negated;
  }
  return formula;
}

MaskFormula MaskReader::readOp(Value condition, bool negated) {
  auto joined = [&](MaskFormula::Kind kind, Value a, Value b) {
    bool isAnd = (kind == MaskFormula::And) != negated;
    return MaskFormula::join(isAnd ? MaskFormula::And : MaskFormula::Or, read(a, negated),
                             read(b, negated));
  };
  Operation *op = condition.getDefiningOp();
  return llvm::TypeSwitch<Operation *, MaskFormula>(op)
      .Case([&](arith::CmpIOp cmp) {
        P predicate = negated ? arith::invertPredicate(cmp.getPredicate()) : cmp.getPredicate();
        return compare(predicate, cmp.getLhs(), cmp.getRhs());
      })
      .Case([&](arith::AndIOp op) { return joined(MaskFormula::And, op.getLhs(), op.getRhs()); })
      .Case([&](arith::OrIOp op) { return joined(MaskFormula::Or, op.getLhs(), op.getRhs()); })
      .Case([&](arith::MulIOp op) {
        return joined(MaskFormula::And, op.getLhs(), op.getRhs());
      }) // a product of booleans is a conjunction
      .Case<arith::XOrIOp, arith::AddIOp, arith::SubIOp>(
          [&](auto op) { return compare(negated ? P::eq : P::ne, op.getLhs(), op.getRhs()); })
      .Case([&](arith::SelectOp op) {
        MaskFormula yes = MaskFormula::join(MaskFormula::And, read(op.getCondition()),
                                            read(op.getTrueValue(), negated));
        MaskFormula no = MaskFormula::join(MaskFormula::And, read(op.getCondition(), true),
                                           read(op.getFalseValue(), negated));
        return MaskFormula::join(MaskFormula::Or, std::move(yes), std::move(no));
      })
      .Default([&](Operation *) {
        if (dependence.of(condition) != Dependence::None)
          return MaskFormula::unknown();
        TileExpr flag = TileExpr::scalar(condition, {0, 1});
        return isNatural(negated ? flag * -1 : flag + -1);
      });
}
