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
// RealMath.cpp has the formulas. For operands of type f32, most functions compute in f64. The
// exceptions are exp, exp2, tanh, erf, round and rsqrt, which compute in f32. The errors against
// libm are at most 2 ulp in f32 and 1e-14 in f64 (test/Codegen/math.mlir). Arguments of sin, cos
// and tan must have |x| < 2^30, because for larger |x| the reduction to [-pi/4, pi/4] loses digits.
//
//===----------------------------------------------------------------------===//

#include "RealMath.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
using Unary = Value (*)(const Real &, Value);
using Binary = Value (*)(const Real &, Value, Value);

/// Expands an op with one operand. If `Wide` is true and the operand is f32, computes in f64 and
/// rounds the result to f32.
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

/// Expands x^n. If n is a constant and |n| <= 64, emits multiplications (repeated squaring).
/// Otherwise emits a math.powf.
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

/// Expands x^y if y is one of the constants 1, 2, 3 and -1.
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

/// Expands clamp to a max with the lower bound, followed by a min with the upper bound. NaN
/// propagates. (The upstream expansion of LLVM 22 exchanges the bounds.)
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

/// Rounds to the nearest integer. If two integers are equally near, rounds away from zero.
static Value roundAway(const Real &r, Value x) {
  Value whole = r.trunc(x);
  Value up = r.add(whole, r.copySign(r.constant(1), x));
  Value half = r.cmp(arith::CmpFPredicate::OGE, r.abs(r.sub(x, whole)), r.constant(0.5));
  return r.select(half, up, whole);
}

/// Returns x - trunc(x / y) y. The result is exact for |x / y| < 2^53, because a computed quotient
/// that is off by one is corrected.
static Value remainder(const Real &r, Value x, Value y) {
  Value a = r.abs(x), d = r.abs(y);
  Value q = r.trunc(r.div(a, d));
  Value rest = r.fma(r.neg(q), d, a);
  rest = r.select(r.less(rest, 0), r.add(rest, d), rest);
  rest = r.select(r.cmp(arith::CmpFPredicate::OGE, rest, d), r.sub(rest, d), rest);
  // If |x| < |y|, the result is x. This includes finite x with infinite y.
  Value small = r.cmp(arith::CmpFPredicate::OLT, a, d);
  return r.copySign(r.select(small, a, rest), x);
}

static Value sinh(const Real &r, Value x) {
  Value m = r.expm1(r.abs(x));
  Value y = r.mul(r.constant(0.5), r.add(m, r.div(m, r.add(m, r.constant(1)))));
  y = r.select(r.equal(m, Real::infinity), m, y);
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
