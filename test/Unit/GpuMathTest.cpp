//===- GpuMathTest.cpp - Elementary functions as PTX ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles each op of the math dialect on f32 to a kernel. Each kernel must reach PTX, because
// instruction selection aborts on an unknown op. Its results in the emulator, whose approximations
// are exact up to rounding, must meet the error bounds of GpuMath.cpp against libm.
//
//===----------------------------------------------------------------------===//

#include "../../tools/fsdp-kernel-test/EmulatorDevice.h"
#include "Codegen/Gpu/Image/GpuLowering.h"
#include "Codegen/Gpu/Ptx/GpuBuilder.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

namespace {
using Build = std::function<Value(OpBuilder &, Location, Value)>;
struct Function {
  const char *name;
  Build build;
  double (*exact)(double) = nullptr;
  double lo = 0, hi = 0, ulps = 0;
  double floor = 0; ///< smaller results may have the absolute error of this one
};

template <typename Op>
Build unary() {
  return [](OpBuilder &b, Location loc, Value x) -> Value { return Op::create(b, loc, x); };
}

Value shortTanh(OpBuilder &b, Location loc, Value x) {
  return math::TanhOp::create(b, loc, x, arith::FastMathFlags::afn);
}

Value one(OpBuilder &b, Location loc) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1));
}

/// 1 + tanh(x)
Value shiftedTanh(OpBuilder &b, Location loc, Value x) {
  return arith::AddFOp::create(b, loc, one(b, loc), math::TanhOp::create(b, loc, x));
}

/// 1 - tanh(x)^2
Value tanhSlope(OpBuilder &b, Location loc, Value x) {
  Value tanh = math::TanhOp::create(b, loc, x);
  return arith::SubFOp::create(b, loc, one(b, loc), arith::MulFOp::create(b, loc, tanh, tanh));
}

Value number(OpBuilder &b, Location loc, float value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}

constexpr float root = 0.797884583F, cubic = 0.044715F;

/// GELU of x, or its derivative as the stage Differentiate writes it.
Value buildGelu(OpBuilder &b, Location loc, Value x, bool isDerivative) {
  auto mul = [&](Value p, Value q) -> Value { return arith::MulFOp::create(b, loc, p, q); };
  auto fma = [&](Value p, Value q, Value r) -> Value {
    return math::FmaOp::create(b, loc, p, q, r);
  };
  Value c = number(b, loc, root), d = number(b, loc, cubic), half = number(b, loc, 0.5F);
  Value halfX = mul(x, half), square = mul(x, x);
  Value tanh = math::TanhOp::create(b, loc, mul(fma(mul(square, x), d, x), c));
  Value shifted = arith::AddFOp::create(b, loc, tanh, one(b, loc));
  if (!isDerivative)
    return mul(halfX, shifted);
  Value slope = fma(arith::NegFOp::create(b, loc, tanh), tanh, one(b, loc));
  Value inner = mul(mul(halfX, slope), c), cube = mul(inner, d), part = mul(mul(cube, x), x);
  Value sum = arith::AddFOp::create(b, loc, fma(cube, square, inner), part);
  return fma(shifted, half, arith::AddFOp::create(b, loc, sum, part));
}

Value gelu(OpBuilder &b, Location loc, Value x) { return buildGelu(b, loc, x, false); }
Value geluSlope(OpBuilder &b, Location loc, Value x) { return buildGelu(b, loc, x, true); }

/// SiLU of x, or its derivative, as fsdp-modelgen and the stage Differentiate write them.
Value buildSilu(OpBuilder &b, Location loc, Value x, bool isDerivative) {
  Value limit = number(b, loc, 40), minus = arith::NegFOp::create(b, loc, x);
  Value e = math::ExpOp::create(b, loc, arith::MinimumFOp::create(b, loc, minus, limit));
  Value sum = arith::AddFOp::create(b, loc, e, one(b, loc));
  auto divide = [&](Value y) -> Value { return arith::DivFOp::create(b, loc, y, sum); };
  Value silu = divide(x);
  if (!isDerivative)
    return silu;
  Value inner = arith::MulFOp::create(b, loc, arith::NegFOp::create(b, loc, divide(silu)), e);
  Value isBelow = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, minus, limit);
  inner = arith::SelectOp::create(b, loc, isBelow, inner, number(b, loc, 0));
  return arith::AddFOp::create(b, loc, divide(one(b, loc)), arith::NegFOp::create(b, loc, inner));
}

Value silu(OpBuilder &b, Location loc, Value x) { return buildSilu(b, loc, x, false); }
Value siluSlope(OpBuilder &b, Location loc, Value x) { return buildSilu(b, loc, x, true); }

/// 1 / (2^x + 1)
Value logistic(OpBuilder &b, Location loc, Value x) {
  Value sum = arith::AddFOp::create(b, loc, math::Exp2Op::create(b, loc, x), one(b, loc));
  return arith::DivFOp::create(b, loc, one(b, loc), sum);
}

class GpuMath : public testing::TestWithParam<Function> {};
} // namespace

static constexpr int64_t count = 4096;

/// Returns the PTX of out[i] = f(in[i]).
static FailureOr<std::string> compile(const Function &function, MLIRContext &context) {
  loadGpuDialects(context);
  Location loc = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(loc), entries = ModuleOp::create(loc);
  OpBuilder builder = OpBuilder::atBlockEnd(kernels->getBody());
  auto tensor = RankedTensorType::get({count}, builder.getF32Type());
  auto kernel =
      func::FuncOp::create(builder, loc, "k", builder.getFunctionType({tensor, tensor}, {}));
  kernel.addEntryBlock();
  kernel.setArgAttr(1, outAttr, builder.getI64IntegerAttr(0));
  GpuBuilder b(loc, &context, 128);
  b.enter(*entries, kernel, "k", 1, /*scratch=*/false);
  Value place = b.to64(b.add(b.mul(b.block(), 128), b.thread()));
  Value x = b.load(b.getF32Type(), b.shift(b.binding(kernel.getArgument(0)), place));
  b.store(function.build(b, loc, x), b.shift(b.binding(kernel.getArgument(1)), place));
  b.leave();
  CodegenOptions options;
  options.target = "sm_80";
  entries->walk([](LLVM::LLVMFuncOp entry) { simplifyActivations(entry.getBody().front()); });
  FailureOr<GpuTarget> target = GpuTarget::get(options, loc);
  if (failed(target) || failed(lowerToNvvm(*entries)))
    return failure();
  return emitPtx(*entries, *target);
}

/// Returns the results of out[i] = f(in[i]) in the emulator.
static std::vector<float> run(const Function &function, std::vector<float> in) {
  MLIRContext context;
  FailureOr<std::string> ptx = compile(function, context);
  std::vector<float> out(count);
  EXPECT_TRUE(succeeded(ptx));
  if (failed(ptx))
    return out;
  EmulatorDevice device(*ptx);
  EmulatorCounts counts;
  EXPECT_EQ(device.run({{"k", count / 128, 128}},
                       {{"in", in.data(), count * 4}, {"out", out.data(), count * 4}}, 0, counts),
            "");
  return out;
}

TEST_P(GpuMath, IsAsNearAsStated) {
  const Function &function = GetParam();
  std::vector<float> in(count);
  for (int64_t i = 0; i < count; ++i)
    in[i] = static_cast<float>(function.lo + (function.hi - function.lo) *
                                                 (static_cast<double>(i) + 0.37) / count);
  std::vector<float> out = run(function, in);
  double worst = 0;
  for (int64_t i = 0; i < count; ++i) {
    double exact = function.exact(in[i]);
    float rounded = static_cast<float>(std::max(std::fabs(exact), function.floor));
    double ulp = std::max<double>(std::nextafterf(rounded, INFINITY) - rounded, 0x1p-149);
    double error = std::fabs(out[i] - exact) / ulp;
    ASSERT_FALSE(std::isnan(out[i])) << "at " << in[i];
    if (std::fabs(exact) > 0x1p-125) // smaller results are flushed to zero
      worst = std::max(worst, error);
  }
  RecordProperty("ulps", std::to_string(worst));
  EXPECT_LE(worst, function.ulps);
}

static double rsqrt(double x) { return 1 / std::sqrt(x); }
static double third(double x) { return x / 3; }
static double inverse(double x) { return 1 / x; }
static double byLargest(double x) { return x / 0x1p127; }
static double onePlusTanh(double x) { return 2 / (1 + std::exp(-2 * x)); }
static double slopeOfTanh(double x) { return 1 / (std::cosh(x) * std::cosh(x)); }
static double exactGelu(double x) {
  return x / (1 + std::exp(-2 * root * (x + cubic * x * x * x)));
}
static double exactGeluSlope(double x) {
  double s = 1 / (1 + std::exp(-2 * root * (x + cubic * x * x * x)));
  return s * (1 + x * (1 - s) * 2 * root * (1 + 3 * cubic * x * x));
}
static double exactSilu(double x) { return x / (1 + std::exp(-x)); }
static double exactSiluSlope(double x) { return (1 + x / (1 + std::exp(x))) / (1 + std::exp(-x)); }
static double exactLogistic(double x) { return 1 / (std::exp2(x) + 1); }
static double cubed(double x) { return std::pow(x, 2.7); }

INSTANTIATE_TEST_SUITE_P(All, GpuMath,
                         testing::
                             Values(
                                 Function{"exp", unary<math::ExpOp>(), std::exp, -86, 88, 2},
                                 Function{"exp2", unary<math::Exp2Op>(), std::exp2, -124, 127, 2},
                                 Function{"expm1", unary<math::ExpM1Op>(), std::expm1, -5, 20, 2},
                                 Function{"log", unary<math::LogOp>(), std::log, 1e-3, 50, 2},
                                 Function{"log2", unary<math::Log2Op>(), std::log2, 1e-3, 50, 2},
                                 Function{"log10", unary<math::Log10Op>(), std::log10, 1e-3, 50, 2},
                                 Function{"log1p", unary<math::Log1pOp>(), std::log1p, -0.99, 9, 2},
                                 Function{"tanh", unary<math::TanhOp>(), std::tanh, -12, 12, 4},
                                 Function{"tanhNear", unary<math::TanhOp>(), std::tanh, -0.7, 0.7,
                                          4},
                                 Function{"tanhShort", shortTanh, std::tanh, -100, 100, 4, 0.9},
                                 Function{"tanhShortNear", shortTanh, std::tanh, -0.7, 0.7, 4, 0.9},
                                 Function{"shiftedTanh", shiftedTanh, onePlusTanh, -12, 12, 32},
                                 Function{"tanhSlope", tanhSlope, slopeOfTanh, -12, 12, 16, 1},
                                 Function{"gelu", gelu, exactGelu, -5.5, 9, 32},
                                 Function{"geluSlope", geluSlope, exactGeluSlope, -6, 9, 20, 1},
                                 Function{"silu", silu, exactSilu, -20, 60, 32},
                                 Function{"siluSlope", siluSlope, exactSiluSlope, -60, 60, 10, 1},
                                 Function{"logistic", logistic, exactLogistic, -120, 120, 4},
                                 Function{"sin", unary<math::SinOp>(), std::sin, -50, 50, 2},
                                 Function{"cos", unary<math::CosOp>(), std::cos, -50, 50, 2},
                                 Function{"tan", unary<math::TanOp>(), std::tan, -1.5, 1.5, 2},
                                 Function{"sinh", unary<math::SinhOp>(), std::sinh, -20, 20, 2},
                                 Function{"cosh", unary<math::CoshOp>(), std::cosh, -20, 20, 2},
                                 Function{"asin", unary<math::AsinOp>(), std::asin, -1, 1, 2},
                                 Function{"acos", unary<math::AcosOp>(), std::acos, -1, 1, 2},
                                 Function{"atan", unary<math::AtanOp>(), std::atan, -30, 30, 2},
                                 Function{"asinh", unary<math::AsinhOp>(), std::asinh, -30, 30, 2},
                                 Function{"acosh", unary<math::AcoshOp>(), std::acosh, 1, 30, 2},
                                 Function{"atanh", unary<math::AtanhOp>(), std::atanh, -0.99, 0.99,
                                          2},
                                 Function{"erf", unary<math::ErfOp>(), std::erf, -4, 4, 4},
                                 Function{"erfc", unary<math::ErfcOp>(), std::erfc, -4, 9.2, 2},
                                 Function{"sqrt", unary<math::SqrtOp>(), std::sqrt, 0, 100, 1},
                                 Function{"rsqrt", unary<math::RsqrtOp>(), rsqrt, 1e-6, 100, 2},
                                 Function{"cbrt", unary<math::CbrtOp>(), std::cbrt, -9, 9, 2},
                                 Function{"ceil", unary<math::CeilOp>(), std::ceil, -9, 9, 0},
                                 Function{"floor", unary<math::FloorOp>(), std::floor, -9, 9, 0},
                                 Function{"trunc", unary<math::TruncOp>(), std::trunc, -9, 9, 0},
                                 Function{"round", unary<math::RoundOp>(), std::round, -9, 9, 0},
                                 Function{"roundeven", unary<math::RoundEvenOp>(), std::nearbyint,
                                          -9, 9, 0},
                                 Function{"abs", unary<math::AbsFOp>(), std::fabs, -9, 9, 0},
                                 Function{"divide",
                                          [](OpBuilder &b, Location loc, Value x) -> Value {
                                            return arith::DivFOp::create(
                                                b, loc, x,
                                                arith::ConstantOp::create(b, loc,
                                                                          b.getF32FloatAttr(3)));
                                          },
                                          third, -1e30, 1e30, 2},
                                 Function{"invert",
                                          [](OpBuilder &b, Location loc, Value x) -> Value {
                                            return arith::DivFOp::create(
                                                b, loc,
                                                arith::ConstantOp::create(b, loc,
                                                                          b.getF32FloatAttr(1)),
                                                x);
                                          },
                                          inverse, -1e3, 1e3, 2},
                                 Function{"divideByLargest",
                                          [](OpBuilder &b, Location loc, Value x) -> Value {
                                            return arith::DivFOp::create(
                                                b, loc, x,
                                                arith::ConstantOp::create(
                                                    b, loc, b.getF32FloatAttr(0x1p127f)));
                                          },
                                          byLargest, -1e38, 1e38, 2},
                                 Function{"power",
                                          [](OpBuilder &b, Location loc, Value x) -> Value {
                                            return math::PowFOp::create(
                                                b, loc, x,
                                                arith::ConstantOp::create(b, loc,
                                                                          b.getF32FloatAttr(2.7f)));
                                          },
                                          cubed, 0, 9, 8}),
                         [](const testing::TestParamInfo<Function> &info) {
                           return std::string(info.param.name);
                         });

Value rounded(OpBuilder &b, Location loc, Value x) {
  Value narrow = arith::TruncFOp::create(b, loc, b.getBF16Type(), x);
  return arith::ExtFOp::create(b, loc, b.getF32Type(), narrow);
}

Value atLeastZero(OpBuilder &b, Location loc, Value x) {
  return arith::MaximumFOp::create(b, loc, x, number(b, loc, 0));
}

Value atMostZero(OpBuilder &b, Location loc, Value x) {
  return arith::MinimumFOp::create(b, loc, number(b, loc, 0), x);
}

TEST(GpuFloats, RoundsToEvenAndPropagatesNan) {
  // Ties, denormal numbers, the largest number, which rounds to infinity, and NaN.
  std::vector<uint32_t> bits{0x3f808000, 0x3f818000, 0x3f808001, 0xbf817fff, 0x00018000,
                             0x80008001, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
                             0xff800001, 0x7fffffff, 0x00000000, 0x80000000};
  std::vector<float> in(count);
  for (int64_t i = 0; i < count; ++i)
    in[i] = llvm::bit_cast<float>(bits[i % bits.size()]);
  auto roundedFloat = [](float x) {
    llvm::APFloat value(x);
    bool losesInfo;
    value.convert(llvm::APFloat::BFloat(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return value.convertToFloat();
  };
  auto check = [&](Build build, llvm::function_ref<float(float)> expected) {
    std::vector<float> out = run({"f", std::move(build)}, in);
    for (int64_t i = 0; i < count; ++i) {
      float want = expected(in[i]);
      ASSERT_EQ(std::isnan(want), std::isnan(out[i])) << "at " << in[i];
      if (!std::isnan(want))
        ASSERT_EQ(want, out[i]) << "at " << in[i];
    }
  };
  check(rounded, roundedFloat);
  check(atLeastZero, [](float x) { return std::isnan(x) ? x : std::max(x, 0.0F); });
  check(atMostZero, [](float x) { return std::isnan(x) ? x : std::min(x, 0.0F); });
}

TEST(SimplifyActivations, LeavesFewOperations) {
  MLIRContext context;
  loadGpuDialects(context);
  Location loc = UnknownLoc::get(&context);
  for (const auto &[build, most] :
       {std::pair<Build, int64_t>(gelu, 7), {geluSlope, 11}, {silu, 5}, {siluSlope, 7}}) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
    Type type = b.getF32Type();
    auto function = func::FuncOp::create(b, loc, "f", b.getFunctionType({type}, {type}));
    Block *body = function.addEntryBlock();
    b.setInsertionPointToStart(body);
    func::ReturnOp::create(b, loc, build(b, loc, body->getArgument(0)));
    simplifyActivations(*body);
    int64_t count = llvm::count_if(*body, [](Operation &op) {
      return !isa<arith::ConstantOp, func::ReturnOp>(op) && !isOpTriviallyDead(&op);
    });
    EXPECT_EQ(count, most);
  }
}
