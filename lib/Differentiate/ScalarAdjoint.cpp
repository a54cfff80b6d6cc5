//===- ScalarAdjoint.cpp - Reverse sweep over scalar code -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For each op, an overload of `rule` returns the term that the cotangent g of the result adds to
// the cotangent of operand i. The overload returns a null value if the term is zero, and failure
// after an error.
//
//   y = tanh(x)     rule = g · (1 - y²)
//
// Rules compute in working precision. The method x(i) returns operand i, and y() returns the
// result, both converted to working precision. The caller removes dead and duplicate ops.
//
//===----------------------------------------------------------------------===//

#include "ScalarAdjoint.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
using Predicate = arith::CmpFPredicate;

namespace {
/// The op that a rule differentiates, and the cotangent `g` of its result. The methods build
/// arithmetic ops.
struct Site {
  OpBuilder &b;
  Location loc;
  Operation *op;
  const ScalarAdjoint &sweep;
  Value g;

  Value x(unsigned i = 0) const { return widen(op->getOperand(i)); }
  Value y() const { return widen(op->getResult(0)); }
  Value widen(Value v) const { return convertFloat(b, loc, v, getWorkingType(v.getType())); }
  bool isActive(unsigned i) const { return sweep.isActive(op->getOperand(i)); }

  Value constant(double c) const {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(g.getType(), c));
  }
  Value add(Value l, Value r) const { return arith::AddFOp::create(b, loc, l, r); }
  Value sub(Value l, Value r) const { return arith::SubFOp::create(b, loc, l, r); }
  Value mul(Value l, Value r) const { return arith::MulFOp::create(b, loc, l, r); }
  Value mul(Value l, double r) const { return mul(l, constant(r)); }
  Value div(Value l, Value r) const { return arith::DivFOp::create(b, loc, l, r); }
  Value neg(Value v) const { return arith::NegFOp::create(b, loc, v); }
  Value square(Value v) const { return mul(v, v); }
  Value sqrt(Value v) const { return math::SqrtOp::create(b, loc, v); }
  Value compare(Predicate p, Value l, Value r) const {
    return arith::CmpFOp::create(b, loc, p, l, r);
  }
  Value select(Value c, Value l, Value r) const { return arith::SelectOp::create(b, loc, c, l, r); }
};
using Rule = FailureOr<Value>;
} // namespace

static Rule rule(arith::AddFOp, Site s, unsigned) { return s.g; }
static Rule rule(arith::SubFOp, Site s, unsigned i) { return i ? s.neg(s.g) : s.g; }
static Rule rule(arith::MulFOp, Site s, unsigned i) { return s.mul(s.g, s.x(1 - i)); }
static Rule rule(arith::DivFOp, Site s, unsigned i) {
  return i ? s.neg(s.div(s.mul(s.g, s.y()), s.x(1))) : s.div(s.g, s.x(1));
}
static Rule rule(arith::NegFOp, Site s, unsigned) { return s.neg(s.g); }
static Rule rule(math::FmaOp, Site s, unsigned i) { return i == 2 ? s.g : s.mul(s.g, s.x(1 - i)); }
// All gradients have working precision, so the operand of a conversion has the same gradient as the
// result.
static Rule rule(arith::ExtFOp, Site s, unsigned) { return s.g; }
static Rule rule(arith::TruncFOp, Site s, unsigned) { return s.g; }
static Rule rule(arith::SelectOp op, Site s, unsigned i) {
  Value zero = s.constant(0);
  return i == 1 ? s.select(op.getCondition(), s.g, zero) : s.select(op.getCondition(), zero, s.g);
}

/// Implements the rule of a minimum or maximum. The cotangent of the result is added to the
/// cotangent of the operand that was chosen as the result. If the operands are equal and both are
/// active, half of the cotangent is added to the cotangent of each operand. If the operands are
/// equal and only one is active, zero is added, so that relu has slope 0 at 0.
static Rule choose(Predicate wins, Site s, unsigned i) {
  Value lost = s.constant(0);
  if (s.isActive(1 - i))
    lost = s.select(s.compare(Predicate::OEQ, s.x(0), s.x(1)), s.mul(s.g, 0.5), lost);
  return s.select(s.compare(wins, s.x(i), s.x(1 - i)), s.g, lost);
}
static Rule rule(arith::MaximumFOp, Site s, unsigned i) { return choose(Predicate::OGT, s, i); }
static Rule rule(arith::MaxNumFOp, Site s, unsigned i) { return choose(Predicate::OGT, s, i); }
static Rule rule(arith::MinimumFOp, Site s, unsigned i) { return choose(Predicate::OLT, s, i); }
static Rule rule(arith::MinNumFOp, Site s, unsigned i) { return choose(Predicate::OLT, s, i); }

static Rule rule(math::ExpOp, Site s, unsigned) { return s.mul(s.g, s.y()); }
static Rule rule(math::Exp2Op, Site s, unsigned) { return s.mul(s.mul(s.g, s.y()), M_LN2); }
static Rule rule(math::ExpM1Op, Site s, unsigned) {
  return s.mul(s.g, s.add(s.y(), s.constant(1)));
}
static Rule rule(math::LogOp, Site s, unsigned) { return s.div(s.g, s.x()); }
static Rule rule(math::Log2Op, Site s, unsigned) { return s.div(s.mul(s.g, M_LOG2E), s.x()); }
static Rule rule(math::Log10Op, Site s, unsigned) { return s.div(s.mul(s.g, M_LOG10E), s.x()); }
static Rule rule(math::Log1pOp, Site s, unsigned) {
  return s.div(s.g, s.add(s.x(), s.constant(1)));
}
static Rule rule(math::SqrtOp, Site s, unsigned) { return s.div(s.mul(s.g, 0.5), s.y()); }
static Rule rule(math::CbrtOp, Site s, unsigned) { return s.div(s.g, s.mul(s.square(s.y()), 3)); }
static Rule rule(math::RsqrtOp, Site s, unsigned) {
  return s.mul(s.mul(s.g, -0.5), s.mul(s.y(), s.square(s.y())));
}
static Rule rule(math::TanhOp, Site s, unsigned) {
  return s.mul(s.g, s.sub(s.constant(1), s.square(s.y())));
}
static Rule rule(math::SinhOp, Site s, unsigned) {
  return s.mul(s.g, math::CoshOp::create(s.b, s.loc, s.x()));
}
static Rule rule(math::CoshOp, Site s, unsigned) {
  return s.mul(s.g, math::SinhOp::create(s.b, s.loc, s.x()));
}
static Rule rule(math::SinOp, Site s, unsigned) {
  return s.mul(s.g, math::CosOp::create(s.b, s.loc, s.x()));
}
static Rule rule(math::CosOp, Site s, unsigned) {
  return s.neg(s.mul(s.g, math::SinOp::create(s.b, s.loc, s.x())));
}
static Rule rule(math::TanOp, Site s, unsigned) {
  return s.mul(s.g, s.add(s.square(s.y()), s.constant(1)));
}
static Rule rule(math::AtanOp, Site s, unsigned) {
  return s.div(s.g, s.add(s.square(s.x()), s.constant(1)));
}
static Rule rule(math::AsinOp, Site s, unsigned) {
  return s.div(s.g, s.sqrt(s.sub(s.constant(1), s.square(s.x()))));
}
static Rule rule(math::AcosOp, Site s, unsigned) {
  return s.neg(s.div(s.g, s.sqrt(s.sub(s.constant(1), s.square(s.x())))));
}
static Rule rule(math::AsinhOp, Site s, unsigned) {
  return s.div(s.g, s.sqrt(s.add(s.square(s.x()), s.constant(1))));
}
static Rule rule(math::AcoshOp, Site s, unsigned) {
  return s.div(s.g, s.sqrt(s.sub(s.square(s.x()), s.constant(1))));
}
static Rule rule(math::AtanhOp, Site s, unsigned) {
  return s.div(s.g, s.sub(s.constant(1), s.square(s.x())));
}
static Rule rule(math::Atan2Op, Site s, unsigned i) { // atan2(x0, x1)
  Value r = s.div(s.g, s.add(s.square(s.x(0)), s.square(s.x(1))));
  return i ? s.neg(s.mul(r, s.x(0))) : s.mul(r, s.x(1));
}

/// Returns g · c · exp(-x²), where x is the operand and g the cotangent of the result.
static Value gauss(Site s, double c) {
  Value e = math::ExpOp::create(s.b, s.loc, s.neg(s.square(s.x())));
  return s.mul(s.mul(s.g, c), e);
}
static Rule rule(math::ErfOp, Site s, unsigned) { return gauss(s, M_2_SQRTPI); }
static Rule rule(math::ErfcOp, Site s, unsigned) { return gauss(s, -M_2_SQRTPI); }

static Rule rule(math::AbsFOp, Site s, unsigned) {
  Value zero = s.constant(0);
  Value negative = s.select(s.compare(Predicate::OLT, s.x(), zero), s.neg(s.g), zero);
  return s.select(s.compare(Predicate::OGT, s.x(), zero), s.g, negative);
}
static Rule rule(math::CopySignOp op, Site s, unsigned i) {
  if (i == 1)
    // Only the sign of operand 1 affects the result, and this sign is piecewise constant.
    return Value();
  Value kept = math::CopySignOp::create(s.b, s.loc, s.constant(1), s.x(0));
  Value wanted = math::CopySignOp::create(s.b, s.loc, s.constant(1), s.x(1));
  return s.mul(s.g, s.mul(kept, wanted));
}
static Rule rule(math::ClampFOp op, Site s, unsigned i) { // value, min, max
  Value zero = s.constant(0), low = s.x(1), high = s.x(2);
  if (i == 1)
    return s.select(s.compare(Predicate::OLT, s.x(0), low), s.g, zero);
  if (i == 2)
    return s.select(s.compare(Predicate::OGT, s.x(0), high), s.g, zero);
  Value below = s.select(s.compare(Predicate::OLE, s.x(0), high), s.g, zero);
  return s.select(s.compare(Predicate::OGE, s.x(0), low), below, zero);
}

/// Returns the value of `v` if it is a constant or a constant that is converted between float
/// types. Else returns nothing.
static std::optional<double> getConstant(Value v) {
  while (Operation *def = v.getDefiningOp()) {
    if (!isa<arith::TruncFOp, arith::ExtFOp>(def))
      break;
    v = def->getOperand(0);
  }
  FloatAttr f;
  if (matchPattern(v, m_Constant(&f)))
    return f.getValueAsDouble();
  IntegerAttr i;
  if (matchPattern(v, m_Constant(&i)))
    return static_cast<double>(i.getValue().getSExtValue());
  return std::nullopt;
}

/// For x^e, returns g · e · x^(e-1). Fails if e is active. Builds products instead of powers if e
/// is a small constant.
static Rule rule(math::PowFOp op, Site s, unsigned i) {
  if (i == 1) {
    op.emitError(
        "no gradient for the exponent of 'math.powf': that gradient exists only for a positive "
        "base; if the base x is positive, write exp(e * log(x)) for the exponent e");
    return failure();
  }
  std::optional<double> e = getConstant(op.getRhs());
  if (!e) {
    Value exponent = s.x(1);
    Value power = math::PowFOp::create(s.b, s.loc, s.x(0), s.sub(exponent, s.constant(1)));
    return s.mul(s.g, s.mul(exponent, power));
  }
  if (*e == 0)
    return Value();
  if (*e == 1)
    return s.g;
  Value power = *e == 2   ? s.x()
                : *e == 3 ? s.square(s.x())
                          : math::PowFOp::create(s.b, s.loc, s.x(), s.constant(*e - 1)).getResult();
  return s.mul(s.g, s.mul(power, *e));
}
static Rule rule(math::FPowIOp op, Site s, unsigned) {
  std::optional<double> e = getConstant(op.getRhs());
  if (e && *e == 0)
    return Value();
  if (e && *e == 1)
    return s.g;
  if (e && *e == 2)
    return s.mul(s.g, s.mul(s.x(), 2));
  Type integer = op.getRhs().getType();
  Value one = arith::ConstantOp::create(s.b, s.loc, s.b.getIntegerAttr(integer, 1));
  Value less = arith::SubIOp::create(s.b, s.loc, op.getRhs(), one);
  Value factor = arith::SIToFPOp::create(s.b, s.loc, s.g.getType(), op.getRhs());
  return s.mul(s.g, s.mul(factor, math::FPowIOp::create(s.b, s.loc, s.x(), less)));
}

static Rule rule(math::FloorOp, Site, unsigned) { return Value(); }
static Rule rule(math::CeilOp, Site, unsigned) { return Value(); }
static Rule rule(math::RoundOp, Site, unsigned) { return Value(); }
static Rule rule(math::RoundEvenOp, Site, unsigned) { return Value(); }
static Rule rule(math::TruncOp, Site, unsigned) { return Value(); }

/// If the type of the op is one of `Ops`, calls the overload of `rule` for this type.
template <typename... Ops>
static std::optional<Rule> findRule(Site s, unsigned i) {
  std::optional<Rule> found;
  auto attempt = [&](auto op) {
    if (op)
      found = rule(op, s, i);
    return found.has_value();
  };
  (void)(attempt(dyn_cast<Ops>(s.op)) || ...);
  return found;
}

static std::optional<Rule> applyRule(Site s, unsigned i) {
  return findRule<
      arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp, arith::ExtFOp,
      arith::TruncFOp, arith::SelectOp, arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
      arith::MinNumFOp, math::FmaOp, math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp,
      math::Log2Op, math::Log10Op, math::Log1pOp, math::SqrtOp, math::CbrtOp, math::RsqrtOp,
      math::TanhOp, math::SinhOp, math::CoshOp, math::SinOp, math::CosOp, math::TanOp, math::AtanOp,
      math::AsinOp, math::AcosOp, math::AsinhOp, math::AcoshOp, math::AtanhOp, math::Atan2Op,
      math::ErfOp, math::ErfcOp, math::AbsFOp, math::CopySignOp, math::ClampFOp, math::PowFOp,
      math::FPowIOp, math::FloorOp, math::CeilOp, math::RoundOp, math::RoundEvenOp, math::TruncOp>(
      s, i);
}

void ScalarAdjoint::seed(Value v, Value g) {
  g = convertFloat(b, loc, g, getWorkingType(v.getType()));
  Value &slot = gradients[v];
  slot = slot ? arith::AddFOp::create(b, loc, slot, g).getResult() : g;
}

/// Fails with an error if a float is computed from the bits of an active float, because such a
/// float has no gradient. Allows comparisons of bits, because they are piecewise constant.
LogicalResult ScalarAdjoint::refuseBits(ArrayRef<Operation *> ops) const {
  llvm::SmallDenseSet<Value> bits;
  for (Operation *op : ops) {
    bool fromFloat =
        isa<arith::BitcastOp>(op) && isActive(op->getOperand(0)) && isFloat(op->getOperand(0));
    bool fromBits = llvm::any_of(op->getOperands(), [&](Value v) { return bits.contains(v); });
    if (isa<arith::BitcastOp>(op) && fromBits && isFloat(op->getResult(0)))
      return op->emitError("no gradient for '")
             << op->getName() << "' of bits that come from a float; write it with ops on floats "
             << "(arith.negf, math.absf, math.copysign), or add 'fsdp.frozen' to the parameters on "
             << "which it depends";
    if ((fromFloat || fromBits) && !isa<arith::CmpIOp>(op))
      for (Value result : op->getResults())
        if (!isFloat(result))
          bits.insert(result);
  }
  return success();
}

LogicalResult ScalarAdjoint::run(ArrayRef<Operation *> ops) {
  auto readsActive = [&](Operation *op) {
    return llvm::any_of(op->getOperands(), [&](Value v) { return isActive(v); });
  };
  for (Operation *op : ops)
    if (readsActive(op))
      for (Value result : op->getResults())
        if (isFloat(result))
          active.insert(result);
  if (failed(refuseBits(ops)))
    return failure();
  for (Operation *op : llvm::reverse(ops)) {
    if (!readsActive(op))
      // The results of the op are not active, or are active only because of a call of activate().
      continue;
    for (Value result : op->getResults())
      if (Value g = gradient(result))
        if (failed(reverse(op, g)))
          return failure();
  }
  return success();
}

LogicalResult ScalarAdjoint::reverse(Operation *op, Value g) {
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    Value operand = op->getOperand(i);
    if (!isActive(operand) || !isFloat(operand))
      continue;
    std::optional<Rule> contribution;
    if (op->getNumResults() == 1)
      contribution = applyRule({b, loc, op, *this, g}, i);
    if (!contribution)
      return op->emitError("no derivative rule for '")
             << op->getName()
             << "'; rewrite it with ops of the model contract (docs/explanation/pipeline.md), or "
             << "add 'fsdp.frozen' to the parameters on which it depends";
    if (failed(*contribution))
      return failure();
    if (**contribution)
      seed(operand, **contribution);
  }
  return success();
}
