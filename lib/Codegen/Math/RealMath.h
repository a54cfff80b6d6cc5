//===- RealMath.h - Elementary functions as arithmetic ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds the arithmetic of elementary functions on values of one floating-point type.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_MATH_REALMATH_H
#define FSDP_LIB_CODEGEN_MATH_REALMATH_H

#include "MathPatterns.h"
#include <limits>

namespace mlir::fsdp {

/// Builds arithmetic on values of one floating-point type: f32, f64, or a vector of either.
class Real {
public:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

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
  /// Evaluates a polynomial by Horner's rule with fma. The first coefficient belongs to the highest
  /// power.
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
  /// Rounds x · factor to an integer n (or x, if `factor` is null). Returns n, and 2^e for e = n -
  /// below. The power is correct if e is the exponent of a normal number. If e is one less than the
  /// exponent of the least normal number, the power is 0. To compute the power, the code adds a
  /// large constant, after which the low bits of the sum contain e + bias. A shift then moves these
  /// bits to the place of the exponent.
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
  /// Computes x - n ln2 in two steps. The high part of ln2 has few bits, so its product with n is
  /// exact.
  Value reduce(Value x, Value n) const {
    Value r = fma(n, constant(isDouble ? -0x1.62e42fefa39efp-1 : -0x1.62e4p-1), x);
    return fma(n, constant(isDouble ? -0x1.abc9e3b39803fp-56 : -0x1.7f7d1cp-20), r);
  }
  /// Returns the coefficients of the polynomial of exp, from the highest power.
  ArrayRef<double> expTail() const;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_MATH_REALMATH_H
