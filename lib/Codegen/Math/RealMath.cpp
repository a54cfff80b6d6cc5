//===- RealMath.cpp - Elementary functions as arithmetic --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   exp    x = n ln2 + r, |r| <= ln2 / 2;  2^n (1 + r + r^2 p(r))
//   log    x = 2^e (1 + f);  e ln2 + 2 atanh(f / (2 + f)), as a sum of two numbers
//   tanh   m / (m + 2) of m = exp(2|x|) - 1
//   erf    |x| <= 1: x + x p(x^2);  otherwise 1 - exp(-q(x))
//   erfc   up to 6 by the forms of erf; above: exp(-x^2) / x p(1 / x^2), x^2 in two terms
//   sin    x = n pi/2 + r (pi/2 in three terms), polynomials in r^2, quadrant from n mod 4
//   pow    exp(y log x), with the logarithm as a sum of two numbers
//
// scripts/fit-polynomials writes the coefficients in Polynomials.inc.
//
//===----------------------------------------------------------------------===//

#include "RealMath.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
#include "Polynomials.inc"
} // namespace

ArrayRef<double> Real::expTail() const {
  return isDouble ? ArrayRef<double>(expTail64) : ArrayRef<double>(expTail32);
}

static constexpr double log2e = 0x1.71547652b82fep0;

/// Returns e^x. Results below 2^-125 (in f64 below 2^-1021), near the end of the normal range,
/// become 0.
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
  // Compute (x - n) ln2 as the sum r + low, where low contains the rounding error of r.
  Value f = sub(x, n), ln2 = constant(isDouble ? 0x1.62e42fefa39efp-1 : 0x1.62e43p-1);
  Value r = mul(f, ln2);
  Value low =
      fma(f, constant(isDouble ? 0x1.abc9e3b39803fp-56 : -0x1.05c61p-29), fma(f, ln2, neg(r)));
  Value p = add(add(fma(mul(r, r), polynomial(expTail(), r), low), r), constant(1));
  Value half = mul(p, s);
  return add(half, half);
}

/// Computes 2^x in f32. Splits x into an integer n and a fraction f, and multiplies 2^(n - 1) by a
/// polynomial that approximates 2^(f + 1).
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
  // The result is 2^n m + (2^n - 1). Compute half of the result first, because 2^n may overflow.
  Value half = fma(s, m, sub(s, constant(0.5)));
  Value y = select(greater(x, top), exp(x), add(half, half));
  // If x is 0 or -0, return x, because y is 0 even for -0.
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

/// Returns erfc(x) for x up to 6. The result is exp(-q(x)) for x > 1, and 2 - exp(-q(-x)) for x <
/// -1, where q is a polynomial. For other x, a polynomial computes erf(x), and the result is 1 -
/// erf(x). The argument of q is limited to 4 in f32 and to 6 in f64. Above these limits, 1 -
/// erfc(x) rounds to 1.
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
  // For x >= 27.3, the result is 0.
  Value a = clamp(x, 6, 30), z = mul(a, a), rest = fma(a, a, neg(z));
  Value p = polynomial(erfcTail64, div(constant(1), z));
  Value far = mul(exp(neg(z)), div(fma(neg(rest), p, p), a));
  return select(greater(x, 6), far, erfcTo6(x));
}

/// Returns the logarithm of x as the sum of two numbers hi and lo. If x is zero, negative, infinite
/// or NaN, hi is the result and lo is 0.
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
  // hi is 2 s + e ln2. The product e ln2 is exact, because the constant for ln2 is rounded to 32
  // bits. lo is the sum of all other terms.
  Value base = mul(eFloat, constant(0x1.62e42feep-1)), twoS = add(s, s);
  Value hi = add(base, twoS);
  Value lo = sub(twoS, sub(hi, base));
  lo = add(lo, sub(base, sub(hi, sub(hi, base))));
  lo = add(lo, mul(eFloat, constant(0x1.a39ef35793c76p-33)));
  lo = add(lo, add(sLow, sLow));
  Value rest = add(tail, tail);
  Value sum = add(hi, rest);
  // rest - (sum - hi) is the exact error of this sum, because |hi| >= |rest|.
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
  // If the base is negative, the result is negative for odd exponents, and NaN for exponents that
  // are not integers.
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
