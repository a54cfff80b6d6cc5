//===- GpuMath.cpp - Elementary functions with GPU instructions --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Replaces f32 operations by approximate instructions where these are accurate enough. The last
// column is the error:
//
//   exp2    ex2.approx.ftz                    2 ulp; 0 below 2^-126
//   exp     2^n · ex2.approx.ftz(log2(e) x - n), n = round(log2(e) x)     3 ulp; 0 below 2^-125
//   tanh    1 - 2 / (1 + e), e = 2^(2 log2(e) |x|); x + x^3 p(x^2) up to 0.6     4 ulp
//           with the flag `afn`: the first form, with x instead of |x|     2^-21, absolute
//   rsqrt   rsqrt.approx.ftz                  2 ulp
//   /       div.full; by a constant, multiplication by its inverse     2 ulp
//           1 / (1 + 2^x): rcp.approx.ftz     2 ulp; 0 above x = 126
//
// populateGpuFloatPatterns() replaces the integer operations of LegaliseFloats.cpp by instructions
// of sm_80. Both are exact, but they return the same NaN for all NaN operands:
//
//   truncf  f32 to bf16: cvt.rn.bf16.f32, which ptxas merges for pairs that are stored together
//   extf    of such a bf16: cvt.rn.bf16x2.f32, which rounds to the high half of an f32
//   maximumf, minimumf   max.NaN, min.NaN; -0 is less than +0
//
// ExpandMath.cpp expands all other functions to arithmetic: erf in f32; logarithms, powers,
// trigonometric and inverse functions in f64. The single instruction tanh.approx would also compute
// tanh, but its error of 2^-11 results in an error of 0.02 for a score capped at 50. With the flag
// `afn`, tanh takes five instructions, and the error of such a score is 0.00002. The test
// GpuMathTest.cpp measures the errors.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Ptx/GpuBuilder.h"
#include "Codegen/Gpu/Ptx/OpWork.h"
#include "GpuLowering.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

#include "Codegen/Math/TanhTail.inc"

static constexpr StringLiteral roundToBf16 = "llvm.nvvm.f2bf16.rn";

static Value real(OpBuilder &b, Location loc, double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(static_cast<float>(value)));
}

/// Emits the form of tanh that is used with the flag `afn`. The result is 1 or -1 even if
/// intermediate values are infinite.
static Value emitShortTanh(OpBuilder &b, Location loc, Value x) {
  Value one = real(b, loc, 1);
  Value e =
      callIntrinsic(b, loc, "llvm.nvvm.ex2.approx.ftz",
                    Value(arith::MulFOp::create(b, loc, x, real(b, loc, 2 * 0x1.71547652b82fep0))));
  Value inverse = callIntrinsic(b, loc, "llvm.nvvm.rcp.approx.ftz.f",
                                Value(arith::AddFOp::create(b, loc, e, one)));
  return LLVM::FMAOp::create(b, loc, inverse, real(b, loc, -2), one);
}

/// Emits e^x. The low bits of `shifted` are n - 1 + the bias, which a shift moves to the place of
/// the exponent. The second half of log2(e) corrects the rounding error of the first.
static Value emitExp(OpBuilder &b, Location loc, Value x) {
  constexpr double magic = 0x1.8p23 + 126, log2e = 0x1.71547652b82fep0;
  constexpr auto high = static_cast<float>(log2e);
  auto fma = [&](Value p, double q, Value r) -> Value {
    return LLVM::FMAOp::create(b, loc, p, real(b, loc, q), r);
  };
  x = arith::MaximumFOp::create(b, loc, x, real(b, loc, -87.34));
  x = arith::MinimumFOp::create(b, loc, x, real(b, loc, 89));
  Value shifted = fma(x, log2e, real(b, loc, magic));
  Value n = arith::SubFOp::create(b, loc, shifted, real(b, loc, magic));
  Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), shifted);
  bits = arith::ShLIOp::create(b, loc, bits,
                               arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(23)));
  Value scale = arith::BitcastOp::create(b, loc, x.getType(), bits);
  Value rest = fma(x, log2e - high, fma(x, high, arith::NegFOp::create(b, loc, n)));
  Value power = callIntrinsic(b, loc, "llvm.nvvm.ex2.approx.ftz", rest);
  Value half = arith::MulFOp::create(b, loc, power, scale);
  return arith::AddFOp::create(b, loc, half, half);
}

static Value emitTanh(OpBuilder &b, Location loc, Value x) {
  auto mul = [&](Value p, Value q) -> Value { return arith::MulFOp::create(b, loc, p, q); };
  auto fma = [&](Value p, Value q, Value r) -> Value {
    return LLVM::FMAOp::create(b, loc, p, q, r);
  };
  Value size = math::AbsFOp::create(b, loc, x), far = emitShortTanh(b, loc, size);
  Value square = mul(x, x), p = real(b, loc, tanhTail32[0]);
  for (double c : ArrayRef(tanhTail32).drop_front())
    p = fma(p, square, real(b, loc, c));
  Value near = fma(mul(size, square), p, size);
  Value isNear = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, size, real(b, loc, 0.6));
  Value result = arith::SelectOp::create(b, loc, isNear, near, far);
  return math::CopySignOp::create(b, loc, result, x);
}

/// Emits x / y. If y is a constant whose inverse is a normal number, the code multiplies x by the
/// rounded inverse. Divisions other than 1 / (1 + 2^z) scale the operands, because otherwise the
/// result would be wrong for some values.
static Value emitDivision(OpBuilder &b, Location loc, Value x, Value y) {
  llvm::APFloat divisor(0.f);
  if (matchPattern(y, m_ConstantFloat(&divisor))) {
    float inverse = 1 / divisor.convertToFloat();
    if (std::isnormal(inverse))
      return arith::MulFOp::create(b, loc, x, real(b, loc, inverse));
  }
  if (isLogistic(x, y))
    return callIntrinsic(b, loc, "llvm.nvvm.rcp.approx.ftz.f", y);
  return callIntrinsic(b, loc, "llvm.nvvm.div.full", ValueRange{x, y});
}

namespace {
struct ApproximateExp : OpRewritePattern<math::ExpOp> {
  explicit ApproximateExp(MLIRContext *context) : OpRewritePattern(context, /*benefit=*/10) {}
  LogicalResult matchAndRewrite(math::ExpOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    rewriter.replaceOp(op, emitExp(rewriter, op.getLoc(), op.getOperand()));
    return success();
  }
};

struct ApproximateTanh : OpRewritePattern<math::TanhOp> {
  explicit ApproximateTanh(MLIRContext *context) : OpRewritePattern(context, /*benefit=*/10) {}
  LogicalResult matchAndRewrite(math::TanhOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    bool isShort = arith::bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn);
    rewriter.replaceOp(
        op, (isShort ? emitShortTanh : emitTanh)(rewriter, op.getLoc(), op.getOperand()));
    return success();
  }
};

struct Divide : OpRewritePattern<arith::DivFOp> {
  explicit Divide(MLIRContext *context) : OpRewritePattern(context, /*benefit=*/10) {}
  LogicalResult matchAndRewrite(arith::DivFOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    rewriter.replaceOp(op, emitDivision(rewriter, op.getLoc(), op.getLhs(), op.getRhs()));
    return success();
  }
};

/// Replaces an op by a call of a single intrinsic.
template <typename Op>
struct CallOne : OpRewritePattern<Op> {
  CallOne(MLIRContext *context, StringRef name)
      : OpRewritePattern<Op>(context, /*benefit=*/10), name(name) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    rewriter.replaceOp(op, callIntrinsic(rewriter, op.getLoc(), name, op->getOperands()));
    return success();
  }
  StringRef name;
};

struct RoundToBf16 : OpRewritePattern<arith::TruncFOp> {
  explicit RoundToBf16(MLIRContext *context) : OpRewritePattern(context, /*benefit=*/10) {}
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isBF16() || !op.getIn().getType().isF32())
      return failure();
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr(roundToBf16), op.getIn());
    return success();
  }
};

struct ExtendRounded : OpRewritePattern<arith::ExtFOp> {
  explicit ExtendRounded(MLIRContext *context) : OpRewritePattern(context, /*benefit=*/10) {}
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    Value source;
    if (auto round = op.getIn().getDefiningOp<arith::TruncFOp>())
      source = round.getIn();
    else if (auto call = op.getIn().getDefiningOp<LLVM::CallIntrinsicOp>();
             call && call.getIntrin() == roundToBf16)
      source = call.getArgs().front();
    if (!source || !source.getType().isF32() || !op.getIn().getType().isBF16() ||
        !op.getType().isF32())
      return failure();
    auto pair = VectorType::get({2}, rewriter.getBF16Type());
    Value halves = NVVM::ConvertF32x2ToBF16x2Op::create(rewriter, op.getLoc(), pair, source,
                                                        real(rewriter, op.getLoc(), 0), Value(),
                                                        NVVM::FPRoundingMode::RN);
    rewriter.replaceOpWithNewOp<LLVM::BitcastOp>(op, op.getType(), halves);
    return success();
  }
};
} // namespace

void fsdp::populateGpuMathPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<CallOne<math::Exp2Op>>(context, "llvm.nvvm.ex2.approx.ftz");
  patterns.add<CallOne<math::RsqrtOp>>(context, "llvm.nvvm.rsqrt.approx.ftz.f");
  patterns.add<ApproximateExp, ApproximateTanh, Divide>(context);
}

void fsdp::populateGpuFloatPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<RoundToBf16, ExtendRounded>(context);
  patterns.add<CallOne<arith::MaximumFOp>>(context, "llvm.nvvm.fmax.nan.f");
  patterns.add<CallOne<arith::MinimumFOp>>(context, "llvm.nvvm.fmin.nan.f");
}
