//===- ExpandMath.cpp - Elementary functions without library calls --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Expands every op of the math dialect that would otherwise become a library call. The expansion
// uses arith, math.fma, math.sqrt and rounding ops, on scalars and vectors of f32 and f64.
// LegaliseFloats.cpp first converts narrower types to f32. Each lane is computed independently by
// the same operations in the same order, so the bits depend on neither the vector width nor the
// instruction set.
//
//   exp    x = n ln2 + r, |r| <= ln2 / 2;  2^n (1 + r + r^2 p(r))
//   log    x = 2^e (1 + f);  e ln2 + 2 atanh(f / (2 + f)), as a sum of two numbers
//   tanh   m / (m + 2) of m = exp(2|x|) - 1
//   erf    |x| <= 1: x + x p(x^2);  otherwise 1 - exp(-q(x))
//   erfc   up to 6 by the forms of erf; above: exp(-x^2) / x p(1 / x^2), x^2 in two terms
//   sin    x = n pi/2 + r (pi/2 in three terms), polynomials in r^2, quadrant from n mod 4
//   pow    exp(y log x), with the logarithm as a sum of two numbers
//
// Functions except exp, exp2, tanh, erf, round and rsqrt compute f32 in f64. The errors against
// libm are at most 2 ulp in f32 and 1e-14 in f64 (test/Codegen/math.mlir). Arguments of sin, cos
// and tan must have |x| < 2^30, because for larger |x| the reduction to [-pi/4, pi/4] loses digits.
//
//===----------------------------------------------------------------------===//

#include "MathPatterns.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
#include "Polynomials.inc"

/// Builds arithmetic on values of one floating-point type: f32, f64, or a vector of either.
class Real {
public:
  Real(OpBuilder &b, Location loc, Type type)
      : type(type), isDouble(getElementTypeOrSelf(type).isF64()), b(b), loc(loc) {}

  Type type;
  bool isDouble;

  Value constant(double v) const {
    return arith::ConstantOp::create(b, loc,
                                     splat(type, b.getFloatAttr(getElementTypeOrSelf(type), v)));
  }
  Value integer(int64_t v) const {
    return arith::ConstantOp::create(
        b, loc, splat(bitsType(), b.getIntegerAttr(getElementTypeOrSelf(bitsType()), v)));
  }
  Value add(Value x, Value y) const { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) const { return arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) const { return arith::MulFOp::create(b, loc, x, y); }
  Value div(Value x, Value y) const { return arith::DivFOp::create(b, loc, x, y); }
  Value neg(Value x) const { return arith::NegFOp::create(b, loc, x); }
  Value fma(Value x, Value y, Value z) const { return math::FmaOp::create(b, loc, x, y, z); }
  Value abs(Value x) const { return math::AbsFOp::create(b, loc, x); }
  Value sqrt(Value x) const { return math::SqrtOp::create(b, loc, x); }
  Value trunc(Value x) const { return math::TruncOp::create(b, loc, x); }
  Value copySign(Value magnitude, Value sign) const {
    return math::CopySignOp::create(b, loc, magnitude, sign);
  }
  Value cmp(arith::CmpFPredicate p, Value x, Value y) const {
    return arith::CmpFOp::create(b, loc, p, x, y);
  }
  Value select(Value c, Value x, Value y) const { return arith::SelectOp::create(b, loc, c, x, y); }
  Value less(Value x, double y) const { return cmp(arith::CmpFPredicate::OLT, x, constant(y)); }
  Value greater(Value x, double y) const { return cmp(arith::CmpFPredicate::OGT, x, constant(y)); }
  Value equal(Value x, double y) const { return cmp(arith::CmpFPredicate::OEQ, x, constant(y)); }
  Value toBits(Value x) const { return arith::BitcastOp::create(b, loc, bitsType(), x); }
  Value fromBits(Value x) const { return arith::BitcastOp::create(b, loc, type, x); }
  Value addInt(Value x, Value y) const { return arith::AddIOp::create(b, loc, x, y); }
  Value subInt(Value x, Value y) const { return arith::SubIOp::create(b, loc, x, y); }
  Value andInt(Value x, int64_t y) const { return arith::AndIOp::create(b, loc, x, integer(y)); }
  Value shiftLeft(Value x, int64_t n) const { return arith::ShLIOp::create(b, loc, x, integer(n)); }
  Value shiftRight(Value x, int64_t n) const {
    return arith::ShRSIOp::create(b, loc, x, integer(n));
  }
  Value isInt(Value x, int64_t y) const {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, integer(y));
  }
  /// Evaluates a polynomial by Horner's rule with fma. The highest power comes first.
  Value polynomial(ArrayRef<double> coefficients, Value x) const {
    Value p = constant(coefficients.front());
    for (double c : coefficients.drop_front())
      p = fma(p, x, constant(c));
    return p;
  }

  Value exp(Value x) const;
  Value expm1(Value x) const;
  Value exp2(Value x) const;
  Value smallExp2(Value x) const;
  Value tanh(Value x) const;
  Value erf(Value x) const;
  Value erfcTo6(Value x) const;
  /// The following functions require f64.
  Value erfc(Value x) const;
  std::pair<Value, Value> logTwo(Value x) const;
  Value log(Value x) const;
  Value log1p(Value x) const;
  Value log2(Value x) const;
  Value pow(Value x, Value y) const;
  Value sinCos(Value x, int64_t quadrant) const;
  Value atan(Value x) const;
  Value atan2(Value y, Value x) const;

private:
  OpBuilder &b;
  Location loc;

  static TypedAttr splat(Type type, TypedAttr element) {
    if (auto shaped = dyn_cast<ShapedType>(type))
      return DenseElementsAttr::get(shaped, Attribute(element));
    return element;
  }
  Type bitsType() const {
    Type element = b.getIntegerType(isDouble ? 64 : 32);
    if (auto vector = dyn_cast<VectorType>(type))
      return VectorType::get(vector.getShape(), element, vector.getScalableDims());
    return element;
  }
  /// Returns n = x · factor (or x if `factor` is null), rounded to an integer, and 2^e for e = n -
  /// below. The power is correct if e is in the normal range, and 0 if e is one below this range.
  /// An addition computes e + bias in the low bits; a shift moves these bits to the exponent.
  std::pair<Value, Value> round(Value x, Value factor, int64_t below) const {
    double magic = (isDouble ? 0x1.8p52 : 0x1.8p23) + (isDouble ? 1023 : 127) - below;
    Value shifted = factor ? fma(x, factor, constant(magic)) : add(x, constant(magic));
    return {sub(shifted, constant(magic)),
            fromBits(shiftLeft(toBits(shifted), isDouble ? 52 : 23))};
  }
  /// Rounds x, where |x| < 2^22, to an integer n. Returns n as a float, and an integer whose low
  /// bits are the low bits of n.
  std::pair<Value, Value> roundToInt(Value x) const {
    double magic = isDouble ? 0x1.8p52 : 0x1.8p23;
    Value shifted = add(x, constant(magic));
    return {sub(shifted, constant(magic)), toBits(shifted)};
  }
  // Clamps x to [lo, hi]. NaN stays NaN.
  Value clamp(Value x, double lo, double hi) const {
    x = select(less(x, lo), constant(lo), x);
    return select(greater(x, hi), constant(hi), x);
  }
  /// Returns x - n ln2 in two steps. The high part of ln2 has few bits, so its product with n is
  /// exact.
  Value reduce(Value x, Value n) const {
    Value r = fma(n, constant(isDouble ? -0x1.62e42fefa39efp-1 : -0x1.62e4p-1), x);
    return fma(n, constant(isDouble ? -0x1.abc9e3b39803fp-56 : -0x1.7f7d1cp-20), r);
  }
  ArrayRef<double> expTail() const {
    return isDouble ? ArrayRef<double>(expTail64) : ArrayRef<double>(expTail32);
  }
};
} // namespace

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr double log2e = 0x1.71547652b82fep0;

/// Returns e^x. Results below the normal range (2^-125, or 2^-1021 in f64) become 0.
Value Real::exp(Value x) const {
  x = isDouble ? clamp(x, -708.4, 710) : clamp(x, -87.34, 89);
  auto [n, s] = round(x, constant(log2e), 1);
  Value r = reduce(x, n);
  Value p = add(fma(mul(r, r), polynomial(expTail(), r), r), constant(1));
  Value half = mul(p, s);
  return add(half, half);
}

Value Real::exp2(Value x) const {
  x = isDouble ? clamp(x, -1022, 1024.4) : clamp(x, -126, 128.4);
  auto [n, s] = round(x, Value(), 1);
  // Computes (x - n) ln2 as the sum r + low, so that the rounding error of r has no effect.
  Value f = sub(x, n), ln2 = constant(isDouble ? 0x1.62e42fefa39efp-1 : 0x1.62e43p-1);
  Value r = mul(f, ln2);
  Value low =
      fma(f, constant(isDouble ? 0x1.abc9e3b39803fp-56 : -0x1.05c61p-29), fma(f, ln2, neg(r)));
  Value p = add(add(fma(mul(r, r), polynomial(expTail(), r), low), r), constant(1));
  Value half = mul(p, s);
  return add(half, half);
}

/// Computes 2^x in f32 for x = n + f as the product of 2^(n - 1) and a polynomial for 2^(f + 1).
Value Real::smallExp2(Value x) const {
  x = select(less(x, -126), constant(-126), x);
  auto [n, s] = round(x, Value(), 1);
  Value f = sub(x, n);
  return mul(fma(polynomial(powerTail32, f), f, constant(2)), s);
}

Value Real::expm1(Value x) const {
  double top = isDouble ? 709 : 88;
  Value c = clamp(x, isDouble ? -40 : -20, top);
  auto [n, s] = round(c, constant(log2e), 1);
  Value r = reduce(c, n);
  Value m = fma(mul(r, r), polynomial(expTail(), r), r);
  // Computes half of 2^n m + (2^n - 1), because 2^n itself may overflow.
  Value half = fma(s, m, sub(s, constant(0.5)));
  Value y = select(greater(x, top), exp(x), add(half, half));
  // Returns x for x = 0 and x = -0, because y is 0 for both.
  return select(equal(x, 0), x, y);
}

Value Real::tanh(Value x) const {
  Value a = abs(x);
  Value m = clamp(add(a, a), 0, isDouble ? 44 : 20);
  auto [n, s] = round(m, constant(log2e), 0);
  Value r = reduce(m, n);
  Value e = fma(mul(r, r), polynomial(expTail(), r), r);
  e = fma(s, e, sub(s, constant(1)));
  return copySign(div(e, add(e, constant(2))), x);
}

Value Real::erf(Value x) const {
  Value a = abs(x), z = mul(x, x);
  ArrayRef<double> near = isDouble ? ArrayRef<double>(erfNear64) : ArrayRef<double>(erfNear32);
  Value inner = fma(polynomial(near, z), x, x);
  return select(greater(a, 1), copySign(sub(constant(1), erfcTo6(a)), x), inner);
}

/// Returns erfc(x): exp(-q(x)) for x > 1, 2 - exp(-q(-x)) for x < -1, otherwise 1 - erf(x) by a
/// polynomial. exp(-q) is constant above 4 in f32 and 6 in f64, where 1 - erfc(x) rounds to 1.
Value Real::erfcTo6(Value x) const {
  Value a = abs(x), z = mul(x, x);
  ArrayRef<double> near = isDouble ? ArrayRef<double>(erfNear64) : ArrayRef<double>(erfNear32);
  ArrayRef<double> far = isDouble ? ArrayRef<double>(erfFar64) : ArrayRef<double>(erfFar32);
  double middle = isDouble ? 3.5 : 2.5, radius = isDouble ? 2.5 : 1.5;
  Value t = mul(sub(clamp(a, 1, middle + radius), constant(middle)), constant(1 / radius));
  Value tail = exp(neg(polynomial(far, t)));
  tail = select(greater(x, 0), tail, sub(constant(2), tail));
  Value inner = sub(constant(1), fma(polynomial(near, z), x, x));
  // Adding 0 · x propagates NaN.
  return select(greater(a, 1), tail, add(inner, mul(x, constant(0))));
}

Value Real::erfc(Value x) const {
  // The result is 0 from x = 27.3 on.
  Value a = clamp(x, 6, 30), z = mul(a, a), rest = fma(a, a, neg(z));
  Value p = polynomial(erfcTail64, div(constant(1), z));
  Value far = mul(exp(neg(z)), div(fma(neg(rest), p, p), a));
  return select(greater(x, 6), far, erfcTo6(x));
}

/// Returns log x = hi + lo for positive, finite x. Zero, negative numbers, infinity and NaN
/// give the correct value in hi, and lo = 0.
std::pair<Value, Value> Real::logTwo(Value x) const {
  Value tiny = less(x, 0x1p-1022);
  Value scaled = select(tiny, mul(x, constant(0x1p54)), x);
  Value bits = toBits(scaled);
  // The mantissa m is in [sqrt(1/2), sqrt(2)).
  Value e = shiftRight(subInt(bits, integer(0x3fe6a09e667f3bcd)), 52);
  Value m = fromBits(subInt(bits, shiftLeft(e, 52)));
  Value eFloat = sub(fromBits(addInt(e, toBits(constant(0x1.8p52)))), constant(0x1.8p52));
  eFloat = select(tiny, sub(eFloat, constant(54)), eFloat);

  Value f = sub(m, constant(1)), d = add(m, constant(1));
  Value s = div(f, d);
  // The low part sLow of the quotient corrects the rounding errors of the division and of m + 1.
  Value sLow = div(fma(neg(s), d, f), d);
  sLow = sub(sLow, mul(s, div(sub(sub(m, d), constant(-1)), d)));
  Value z = mul(s, s);
  Value tail = mul(mul(s, z), polynomial(atanhTail64, z));
  // hi is 2 s + e ln2; e ln2 is exact, as this ln2 has 32 bits. lo is the sum of all other terms.
  Value base = mul(eFloat, constant(0x1.62e42feep-1)), twoS = add(s, s);
  Value hi = add(base, twoS);
  Value lo = sub(twoS, sub(hi, base));
  lo = add(lo, sub(base, sub(hi, sub(hi, base))));
  lo = add(lo, mul(eFloat, constant(0x1.a39ef35793c76p-33)));
  lo = add(lo, add(sLow, sLow));
  Value rest = add(tail, tail);
  // The line after this addition computes the exact error of the addition, because |hi| >= |rest|.
  Value sum = add(hi, rest);
  lo = add(lo, sub(rest, sub(sum, hi)));

  Value zero = constant(0);
  auto special = [&](Value c, Value v) {
    sum = select(c, v, sum);
    lo = select(c, zero, lo);
  };
  special(equal(x, 0), constant(-infinity));
  special(equal(x, infinity), constant(infinity));
  special(less(x, 0), constant(std::numeric_limits<double>::quiet_NaN()));
  special(cmp(arith::CmpFPredicate::UNO, x, x), x);
  return {sum, lo};
}

Value Real::log(Value x) const {
  auto [hi, lo] = logTwo(x);
  return add(hi, lo);
}

Value Real::log2(Value x) const {
  auto [hi, lo] = logTwo(x);
  Value r = mul(hi, constant(log2e));
  Value low = fma(hi, constant(log2e), neg(r));
  low = fma(hi, constant(0x1.777d0ffda0d24p-56), fma(lo, constant(log2e), low));
  Value y = add(r, low);
  return select(cmp(arith::CmpFPredicate::OEQ, abs(hi), constant(infinity)), hi, y);
}

Value Real::log1p(Value x) const {
  Value u = add(constant(1), x);
  Value y = add(log(u), div(sub(x, sub(u, constant(1))), u));
  y = select(equal(u, 0), constant(-infinity), y);
  y = select(equal(u, infinity), u, y);
  return select(equal(x, 0), x, y);
}

Value Real::pow(Value x, Value y) const {
  Value a = abs(x);
  auto [hi, lo] = logTwo(a);
  Value p = mul(y, hi);
  Value low = fma(y, lo, fma(y, hi, neg(p)));
  Value finite = cmp(arith::CmpFPredicate::OLT, abs(p), constant(0x1p20));
  low = select(finite, low, constant(0));
  Value r = exp(p);
  r = select(cmp(arith::CmpFPredicate::OLT, abs(r), constant(infinity)), fma(r, low, r), r);
  // If the base is negative, the result is negative for odd exponents, and NaN for fractional ones.
  Value whole = cmp(arith::CmpFPredicate::OEQ, trunc(y), y);
  Value half = mul(y, constant(0.5));
  Value odd =
      arith::AndIOp::create(b, loc, whole, cmp(arith::CmpFPredicate::ONE, trunc(half), half));
  Value negative = cmp(arith::CmpFPredicate::OLT, copySign(constant(1), x), constant(0));
  Value flips = arith::AndIOp::create(b, loc, negative, odd);
  r = select(flips, neg(r), r);
  Value undefined = arith::AndIOp::create(
      b, loc, less(x, 0),
      arith::AndIOp::create(b, loc, cmp(arith::CmpFPredicate::ONE, trunc(y), y),
                            cmp(arith::CmpFPredicate::OGT, x, constant(-infinity))));
  r = select(undefined, constant(std::numeric_limits<double>::quiet_NaN()), r);
  r = select(equal(x, 1), constant(1), r);
  return select(equal(y, 0), constant(1), r);
}

/// Returns sin(x + quadrant pi/2).
Value Real::sinCos(Value x, int64_t quadrant) const {
  auto [n, bits] = roundToInt(mul(x, constant(0x1.45f306dc9c883p-1)));
  Value r = fma(n, constant(-0x1.921fb54442d18p0), x);
  r = fma(n, constant(-0x1.1a62633145c07p-54), r);
  r = fma(n, constant(0x1.f1976b7ed8fbcp-110), r);
  Value z = mul(r, r);
  Value s = fma(mul(r, z), polynomial(sinTail64, z), r);
  Value c = fma(mul(z, z), polynomial(cosTail64, z), fma(z, constant(-0.5), constant(1)));
  Value q = addInt(bits, integer(quadrant));
  Value y = select(isInt(andInt(q, 1), 0), s, c);
  return select(isInt(andInt(q, 2), 0), y, neg(y));
}

Value Real::atan(Value x) const {
  constexpr double tanEighth = 0x1.a827999fcef32p-2; // tan(pi / 8)
  Value a = abs(x);
  Value inverted = greater(a, 1);
  Value u = select(inverted, div(constant(1), a), a);
  Value upper = greater(u, tanEighth);
  u = select(upper, div(sub(u, constant(1)), add(u, constant(1))), u);
  Value z = mul(u, u);
  Value y = fma(mul(u, z), polynomial(atanTail64, z), u);
  y = select(upper, add(y, constant(0x1.921fb54442d18p-1)), y);
  y = select(inverted, sub(constant(0x1.921fb54442d18p0), y), y);
  return copySign(y, x);
}

Value Real::atan2(Value y, Value x) const {
  Value ax = abs(x), ay = abs(y);
  Value ratio = div(ay, ax);
  Value bothZero = arith::AndIOp::create(b, loc, equal(ax, 0), equal(ay, 0));
  Value bothInf = arith::AndIOp::create(b, loc, equal(ax, infinity), equal(ay, infinity));
  ratio = select(bothZero, constant(0), select(bothInf, constant(1), ratio));
  Value angle = atan(ratio);
  Value left = cmp(arith::CmpFPredicate::OLT, copySign(constant(1), x), constant(0));
  angle = select(left, sub(constant(0x1.921fb54442d18p1), angle), angle);
  return copySign(angle, y);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {
using Unary = Value (*)(const Real &, Value);
using Binary = Value (*)(const Real &, Value, Value);

/// Expands an op with one operand. If `Wide` is true, computes f32 in f64 and rounds the result.
template <typename Op, bool Wide>
struct ExpandUnary : OpRewritePattern<Op> {
  ExpandUnary(MLIRContext *context, Unary expand) : OpRewritePattern<Op>(context), expand(expand) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    return rewriteIn<Wide>(op, rewriter,
                           [&](const Real &real, ValueRange x) { return expand(real, x[0]); });
  }
  Unary expand;

  template <bool InDouble, typename Fn>
  static LogicalResult rewriteIn(Operation *op, PatternRewriter &rewriter, Fn &&fn) {
    Type type = op->getResult(0).getType(), element = getElementTypeOrSelf(type);
    if (!element.isF32() && !element.isF64())
      return failure();
    Location loc = op->getLoc();
    SmallVector<Value> operands(op->getOperands());
    Type wide = type;
    if (InDouble && element.isF32()) {
      wide = rewriter.getF64Type();
      if (auto vector = dyn_cast<VectorType>(type))
        wide = vector.clone(rewriter.getF64Type());
      for (Value &operand : operands)
        operand = arith::ExtFOp::create(rewriter, loc, wide, operand);
    }
    Value result = fn(Real(rewriter, loc, wide), operands);
    if (wide != type)
      result = arith::TruncFOp::create(rewriter, loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

template <typename Op, bool Wide>
struct ExpandBinary : OpRewritePattern<Op> {
  ExpandBinary(MLIRContext *context, Binary expand)
      : OpRewritePattern<Op>(context), expand(expand) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    return ExpandUnary<Op, Wide>::template rewriteIn<Wide>(
        op, rewriter, [&](const Real &real, ValueRange x) { return expand(real, x[0], x[1]); });
  }
  Binary expand;
};

/// Expands x^n: repeated squaring for constant |n| <= 64, otherwise pow.
struct ExpandPowI : OpRewritePattern<math::FPowIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::FPowIOp op, PatternRewriter &rewriter) const override {
    Type type = op.getType(), element = getElementTypeOrSelf(type);
    if (!element.isF32() && !element.isF64())
      return failure();
    Real real(rewriter, op.getLoc(), type);
    IntegerAttr attr;
    DenseIntElementsAttr dense;
    std::optional<int64_t> n;
    if (matchPattern(op.getRhs(), m_Constant(&attr)))
      n = attr.getInt();
    else if (matchPattern(op.getRhs(), m_Constant(&dense)) && dense.isSplat())
      n = dense.getSplatValue<APInt>().getSExtValue();
    if (!n || std::abs(*n) > 64) {
      Value y = arith::SIToFPOp::create(rewriter, op.getLoc(), type, op.getRhs());
      rewriter.replaceOpWithNewOp<math::PowFOp>(op, op.getLhs(), y);
      return success();
    }
    Value result, square = op.getLhs();
    for (uint64_t k = std::abs(*n); k; k >>= 1) {
      if (k & 1)
        result = result ? real.mul(result, square) : square;
      if (k > 1)
        square = real.mul(square, square);
    }
    if (!result)
      result = real.constant(1);
    rewriter.replaceOp(op, *n < 0 ? real.div(real.constant(1), result) : result);
    return success();
  }
};

/// Expands x^y for the constants y = 1, 2, 3 and -1.
struct ExpandPowConstant : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::PowFOp op, PatternRewriter &rewriter) const override {
    std::optional<double> y;
    FloatAttr attr;
    DenseFPElementsAttr dense;
    Type element = getElementTypeOrSelf(op.getType());
    if (!element.isF32() && !element.isF64())
      return failure();
    if (matchPattern(op.getRhs(), m_Constant(&attr)))
      y = attr.getValueAsDouble();
    else if (matchPattern(op.getRhs(), m_Constant(&dense)) && dense.isSplat())
      y = FloatAttr::get(element, dense.getSplatValue<APFloat>()).getValueAsDouble();
    if (!y)
      return failure();
    Real real(rewriter, op.getLoc(), op.getType());
    Value x = op.getLhs();
    if (*y == 1)
      rewriter.replaceOp(op, x);
    else if (*y == 2)
      rewriter.replaceOp(op, real.mul(x, x));
    else if (*y == 3)
      rewriter.replaceOp(op, real.mul(real.mul(x, x), x));
    else if (*y == -1)
      rewriter.replaceOp(op, real.div(real.constant(1), x));
    else
      return failure();
    return success();
  }
};

/// Expands clamp to max with the lower bound, then min with the upper bound. NaN propagates. (The
/// upstream expansion of LLVM 22 exchanges the bounds.)
struct ExpandClamp : OpRewritePattern<math::ClampFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ClampFOp op, PatternRewriter &rewriter) const override {
    Value raised = arith::MaximumFOp::create(rewriter, op.getLoc(), op.getValue(), op.getMin());
    rewriter.replaceOpWithNewOp<arith::MinimumFOp>(op, raised, op.getMax());
    return success();
  }
};
} // namespace

template <typename Op, bool Wide>
static void addUnary(RewritePatternSet &patterns, Unary expand) {
  patterns.add<ExpandUnary<Op, Wide>>(patterns.getContext(), expand);
}
template <typename Op, bool Wide>
static void addBinary(RewritePatternSet &patterns, Binary expand) {
  patterns.add<ExpandBinary<Op, Wide>>(patterns.getContext(), expand);
}

/// Rounds to the nearest integer, and a half away from zero.
static Value roundAway(const Real &r, Value x) {
  Value whole = r.trunc(x);
  Value up = r.add(whole, r.copySign(r.constant(1), x));
  Value half = r.cmp(arith::CmpFPredicate::OGE, r.abs(r.sub(x, whole)), r.constant(0.5));
  return r.select(half, up, whole);
}

/// Returns x - trunc(x / y) y, exact for |x / y| < 2^53 (the quotient may be off by one).
static Value remainder(const Real &r, Value x, Value y) {
  Value a = r.abs(x), d = r.abs(y);
  Value q = r.trunc(r.div(a, d));
  Value rest = r.fma(r.neg(q), d, a);
  rest = r.select(r.less(rest, 0), r.add(rest, d), rest);
  rest = r.select(r.cmp(arith::CmpFPredicate::OGE, rest, d), r.sub(rest, d), rest);
  // `small` is also true for an infinite divisor.
  Value small = r.cmp(arith::CmpFPredicate::OLT, a, d);
  return r.copySign(r.select(small, a, rest), x);
}

static Value sinh(const Real &r, Value x) {
  Value m = r.expm1(r.abs(x));
  Value y = r.mul(r.constant(0.5), r.add(m, r.div(m, r.add(m, r.constant(1)))));
  y = r.select(r.equal(m, infinity), m, y);
  return r.copySign(y, x);
}

static Value cosh(const Real &r, Value x) {
  Value e = r.exp(r.abs(x));
  return r.add(r.mul(r.constant(0.5), e), r.div(r.constant(0.5), e));
}

static Value asin(const Real &r, Value x) {
  Value root = r.sqrt(r.mul(r.sub(r.constant(1), x), r.add(r.constant(1), x)));
  return r.atan2(x, root);
}

static Value acos(const Real &r, Value x) {
  Value root = r.sqrt(r.mul(r.sub(r.constant(1), x), r.add(r.constant(1), x)));
  return r.atan2(root, x);
}

static Value atanh(const Real &r, Value x) {
  Value a = r.abs(x);
  Value y = r.mul(r.constant(0.5), r.log1p(r.div(r.add(a, a), r.sub(r.constant(1), a))));
  return r.copySign(y, x);
}

static Value asinh(const Real &r, Value x) {
  Value a = r.abs(x), one = r.constant(1);
  Value s = r.mul(a, a);
  Value y = r.log1p(r.add(a, r.div(s, r.add(one, r.sqrt(r.add(s, one))))));
  y = r.select(r.greater(a, 0x1p40), r.add(r.log(a), r.constant(0x1.62e42fefa39efp-1)), y);
  return r.copySign(y, x);
}

static Value acosh(const Real &r, Value x) {
  Value t = r.sub(x, r.constant(1));
  Value y = r.log1p(r.add(t, r.sqrt(r.mul(t, r.add(x, r.constant(1))))));
  return r.select(r.greater(x, 0x1p40), r.add(r.log(x), r.constant(0x1.62e42fefa39efp-1)), y);
}

static Value cbrt(const Real &r, Value x) {
  Value a = r.abs(x);
  Value y = r.pow(a, r.constant(1.0 / 3));
  return r.copySign(r.select(r.equal(a, 0), a, y), x);
}

Value fsdp::expandSmallExp2(OpBuilder &b, Location loc, Value x) {
  return Real(b, loc, x.getType()).smallExp2(x);
}

void fsdp::populateExpandMathPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandPowI, ExpandClamp>(patterns.getContext());
  patterns.add<ExpandPowConstant>(patterns.getContext(), /*benefit=*/2);
  addUnary<math::ExpOp, false>(patterns, [](const Real &r, Value x) { return r.exp(x); });
  addUnary<math::Exp2Op, false>(patterns, [](const Real &r, Value x) { return r.exp2(x); });
  addUnary<math::ExpM1Op, true>(patterns, [](const Real &r, Value x) { return r.expm1(x); });
  addUnary<math::TanhOp, false>(patterns, [](const Real &r, Value x) { return r.tanh(x); });
  addUnary<math::ErfOp, false>(patterns, [](const Real &r, Value x) { return r.erf(x); });
  addUnary<math::ErfcOp, true>(patterns, [](const Real &r, Value x) { return r.erfc(x); });
  addUnary<math::LogOp, true>(patterns, [](const Real &r, Value x) { return r.log(x); });
  addUnary<math::Log1pOp, true>(patterns, [](const Real &r, Value x) { return r.log1p(x); });
  addUnary<math::Log2Op, true>(patterns, [](const Real &r, Value x) { return r.log2(x); });
  addUnary<math::Log10Op, true>(patterns, [](const Real &r, Value x) {
    return r.mul(r.log2(x), r.constant(0x1.34413509f79ffp-2));
  });
  addUnary<math::SinOp, true>(patterns, [](const Real &r, Value x) { return r.sinCos(x, 0); });
  addUnary<math::CosOp, true>(patterns, [](const Real &r, Value x) { return r.sinCos(x, 1); });
  addUnary<math::TanOp, true>(
      patterns, [](const Real &r, Value x) { return r.div(r.sinCos(x, 0), r.sinCos(x, 1)); });
  addUnary<math::AtanOp, true>(patterns, [](const Real &r, Value x) { return r.atan(x); });
  addUnary<math::AsinOp, true>(patterns, asin);
  addUnary<math::AcosOp, true>(patterns, acos);
  addUnary<math::SinhOp, true>(patterns, sinh);
  addUnary<math::CoshOp, true>(patterns, cosh);
  addUnary<math::AsinhOp, true>(patterns, asinh);
  addUnary<math::AcoshOp, true>(patterns, acosh);
  addUnary<math::AtanhOp, true>(patterns, atanh);
  addUnary<math::CbrtOp, true>(patterns, cbrt);
  addUnary<math::RoundOp, false>(patterns, roundAway);
  addUnary<math::RsqrtOp, false>(
      patterns, [](const Real &r, Value x) { return r.div(r.constant(1), r.sqrt(x)); });
  addBinary<math::PowFOp, true>(patterns,
                                [](const Real &r, Value x, Value y) { return r.pow(x, y); });
  addBinary<math::Atan2Op, true>(patterns,
                                 [](const Real &r, Value y, Value x) { return r.atan2(y, x); });
  addBinary<arith::RemFOp, true>(patterns, remainder);
}
