//===- Scalar.h - Arithmetic on one element, written as formulas --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A Scalar is an SSA value of a float type. Scalar has arithmetic operators, which build ops. The
// code that builds the body of a linalg op therefore resembles the formula that the body computes:
//
//   Scalar gate = x / (exp(-x) + 1.0);
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_MODELGEN_SCALAR_H
#define FSDP_MODELGEN_SCALAR_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

namespace mlir::fsdp::modelgen {

class Scalar {
public:
  Scalar(OpBuilder &builder, Location loc, Value value)
      : builder(&builder), loc(loc), value(value) {}

  Value get() const { return value; }
  Scalar constant(double number) const {
    auto type = cast<FloatType>(value.getType());
    return with(arith::ConstantOp::create(*builder, loc, builder->getFloatAttr(type, number)));
  }
  template <typename Op>
  Scalar apply() const {
    return with(Op::create(*builder, loc, value));
  }
  template <typename Op>
  Scalar apply(Scalar other) const {
    return with(Op::create(*builder, loc, value, other.value));
  }
  /// Builds a select. If the index of the loop `low` is at most the index of the loop `high`, the
  /// result is this value. Otherwise the result is the value `otherwise`.
  Scalar whereAtMost(unsigned low, unsigned high, Scalar otherwise) const {
    Value inside = arith::CmpIOp::create(*builder, loc, arith::CmpIPredicate::ule,
                                         linalg::IndexOp::create(*builder, loc, low),
                                         linalg::IndexOp::create(*builder, loc, high));
    return with(arith::SelectOp::create(*builder, loc, inside, value, otherwise.value));
  }

  friend Scalar operator+(Scalar a, Scalar b) { return a.apply<arith::AddFOp>(b); }
  friend Scalar operator-(Scalar a, Scalar b) { return a.apply<arith::SubFOp>(b); }
  friend Scalar operator*(Scalar a, Scalar b) { return a.apply<arith::MulFOp>(b); }
  friend Scalar operator/(Scalar a, Scalar b) { return a.apply<arith::DivFOp>(b); }
  friend Scalar operator-(Scalar a) { return a.apply<arith::NegFOp>(); }
  friend Scalar operator+(Scalar a, double b) { return a + a.constant(b); }
  friend Scalar operator*(Scalar a, double b) { return a * a.constant(b); }
  friend Scalar operator/(Scalar a, double b) { return a / a.constant(b); }

private:
  Scalar with(Value result) const { return Scalar(*builder, loc, result); }

  OpBuilder *builder;
  Location loc;
  Value value;
};

inline Scalar exp(Scalar x) { return x.apply<math::ExpOp>(); }
inline Scalar tanh(Scalar x) { return x.apply<math::TanhOp>(); }
inline Scalar erf(Scalar x) { return x.apply<math::ErfOp>(); }
inline Scalar rsqrt(Scalar x) { return x.apply<math::RsqrtOp>(); }
inline Scalar min(Scalar x, Scalar y) { return x.apply<arith::MinimumFOp>(y); }
inline Scalar max(Scalar x, Scalar y) { return x.apply<arith::MaximumFOp>(y); }

} // namespace mlir::fsdp::modelgen

#endif // FSDP_MODELGEN_SCALAR_H
