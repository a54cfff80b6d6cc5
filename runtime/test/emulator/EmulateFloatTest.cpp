//===- EmulateFloatTest.cpp - Floating-point instructions against C++ *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares rounded results with exact results or with results in a wider format. Narrow formats are
// tested with all of their numbers.
//
//===----------------------------------------------------------------------===//

#include "emulator/arithmetic/Formats.h"
#include "test/emulator/EmulateFixture.h"
#include <cfenv>
#include <cmath>
#include <random>

using namespace fsdprt::test;
using namespace fsdprt::emulate;

static const std::vector<uint32_t> none = {0};
static std::vector<uint32_t> floatBits() {
  std::vector<uint32_t> bits = {0,          0x80000000, 1,          0x80000001, 0x007fffff,
                                0x00800000, 0x3f800000, 0xbf800000, 0x3f800001, 0x40490fdb,
                                0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
                                0x3effffff, 0x4b7fffff, 0x33800000};
  std::mt19937 random(3);
  for (int k = 0; k < 20; ++k)
    bits.push_back(random());
  return bits;
}
static float asFloat(uint32_t bits) { return bitsAs<float>(bits); }
static uint32_t asBits(float value) {
  return value == value ? bitsAs<uint32_t>(value) : canonicalNan;
}
static float flushIf(bool flushes, float value) { return flushes ? flushed(value) : value; }

template <typename Reference>
static void expectFloat(const std::string &op, bool flushes, Reference reference) {
  auto f = floatBits();
  bool isTernary = op.find("%c") != std::string::npos;
  expectOp<uint32_t>(op, f, f, isTernary ? f : none, [&](uint32_t a, uint32_t b, uint32_t c) {
    return asBits(
        flushIf(flushes, reference(flushIf(flushes, asFloat(a)), flushIf(flushes, asFloat(b)),
                                   flushIf(flushes, asFloat(c)))));
  });
}

TEST(EmulateFloat, ArithmeticRoundsToNearest) {
  expectFloat("add.f32 %d, %a, %b;", false, [](float a, float b, float) { return a + b; });
  expectFloat("sub.rn.f32 %d, %a, %b;", false, [](float a, float b, float) { return a - b; });
  expectFloat("mul.f32 %d, %a, %b;", false, [](float a, float b, float) { return a * b; });
  expectFloat("div.rn.f32 %d, %a, %b;", false, [](float a, float b, float) { return a / b; });
  expectFloat("fma.rn.f32 %d, %a, %b, %c;", false,
              [](float a, float b, float c) { return std::fma(a, b, c); });
  expectFloat("sqrt.rn.f32 %d, %a;", false, [](float a, float, float) { return std::sqrt(a); });
  expectFloat("rcp.rn.f32 %d, %a;", false, [](float a, float, float) { return 1 / a; });
}

TEST(EmulateFloat, SubnormalNumbersAreFlushedIfAsked) {
  expectFloat("add.ftz.f32 %d, %a, %b;", true, [](float a, float b, float) { return a + b; });
  expectFloat("mul.ftz.f32 %d, %a, %b;", true, [](float a, float b, float) { return a * b; });
  expectFloat("fma.rn.ftz.f32 %d, %a, %b, %c;", true,
              [](float a, float b, float c) { return std::fma(a, b, c); });
}

TEST(EmulateFloat, OtherRoundings) {
  struct Mode {
    const char *name;
    int mode;
  };
  for (Mode mode : {Mode{"rz", FE_TOWARDZERO}, Mode{"rm", FE_DOWNWARD}, Mode{"rp", FE_UPWARD}}) {
    auto in = [&](auto compute) {
      return [=](float a, float b, float c) {
        std::fesetround(mode.mode);
        volatile float x = a, y = b, z = c;
        volatile float r = compute(x, y, z);
        std::fesetround(FE_TONEAREST);
        return r;
      };
    };
    std::string m = mode.name;
    expectFloat("add." + m + ".f32 %d, %a, %b;", false,
                in([](volatile float &a, volatile float &b, volatile float &) { return a + b; }));
    expectFloat("mul." + m + ".f32 %d, %a, %b;", false,
                in([](volatile float &a, volatile float &b, volatile float &) { return a * b; }));
    expectFloat("div." + m + ".f32 %d, %a, %b;", false,
                in([](volatile float &a, volatile float &b, volatile float &) { return a / b; }));
  }
}

TEST(EmulateFloat, SaturationAndExtremes) {
  expectFloat("add.sat.f32 %d, %a, %b;", false, [](float a, float b, float) {
    float sum = a + b;
    return sum > 0 ? std::min(sum, 1.0f) : 0.0f;
  });
  auto extreme = [](bool isMin) {
    return [isMin](float a, float b, float) {
      if (a != a || b != b)
        return a != a ? b : a;
      if (a == b)
        return std::signbit(a) == isMin ? a : b;
      return (a < b) == isMin ? a : b;
    };
  };
  expectFloat("min.f32 %d, %a, %b;", false, extreme(true));
  expectFloat("max.f32 %d, %a, %b;", false, extreme(false));
  expectFloat("max.NaN.f32 %d, %a, %b;", false, [&](float a, float b, float c) {
    return a != a || b != b ? NAN : extreme(false)(a, b, c);
  });
  expectFloat("abs.f32 %d, %a;", false, [](float a, float, float) { return std::fabs(a); });
  expectFloat("neg.f32 %d, %a;", false, [](float a, float, float) { return -a; });
}

TEST(EmulateFloat, ComparisonsKnowNan) {
  auto f = floatBits();
  auto test = [&](const std::string &name, auto holds) {
    expectOp<uint32_t>(
        "setp." + name + ".f32 %q, %a, %b; selp.b32 %d, 1, 0, %q;", f, f, none,
        [&](uint32_t a, uint32_t b, uint32_t) { return uint32_t(holds(asFloat(a), asFloat(b))); });
  };
  test("lt", [](float a, float b) { return a < b; });
  test("ne", [](float a, float b) { return a < b || a > b; });
  test("neu", [](float a, float b) { return a != b; });
  test("geu", [](float a, float b) { return !(a < b); });
  test("nan", [](float a, float b) { return a != a || b != b; });
  test("num", [](float a, float b) { return a == a && b == b; });
}

TEST(EmulateFloat, Doubles) {
  std::vector<double> d = {0, -0.0, 1, -1.5, 1e-320, 1e300, -1e300, 3.14159, 0x1p-1022, 12345.678};
  expectOp<double>("add.f64 %d, %a, %b;", d, d, none,
                   [](double a, double b, uint32_t) { return a + b; });
  expectOp<double>("fma.rn.f64 %d, %a, %b, %c;", d, d, d,
                   [](double a, double b, double c) { return std::fma(a, b, c); });
  expectOp<double>("max.f64 %d, %a, %b;", d, d, none, [](double a, double b, uint32_t) {
    return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
  });
}

TEST(EmulateFloat, EveryHalfWidensAndComesBack) {
  std::vector<uint16_t> all;
  for (uint32_t bits = 0; bits < 0x10000; ++bits)
    all.push_back(bits);
  std::vector<uint32_t> f16 =
      runOp<uint32_t>("cvt.f32.f16 %d, %a;", all, std::vector<uint32_t>(all.size()),
                      std::vector<uint32_t>(all.size()));
  std::vector<uint32_t> bf16 =
      runOp<uint32_t>("cvt.f32.bf16 %d, %a;", all, std::vector<uint32_t>(all.size()),
                      std::vector<uint32_t>(all.size()));
  std::vector<uint16_t> back = runOp<uint16_t>("cvt.rn.f16.f32 %d, %a;", f16, f16, f16);
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    double wanted = decode(bits, formatF16);
    if (wanted != wanted) {
      EXPECT_EQ(back[bits], 0x7fff);
      continue;
    }
    ASSERT_EQ(asFloat(f16[bits]), wanted) << bits;
    ASSERT_EQ(back[bits], bits);
    ASSERT_EQ(bf16[bits], bits << 16);
  }
}

/// Compares the results of conversions with encode(). A conversion with .rz must give the nearest
/// number of the format whose magnitude does not exceed the magnitude of the operand.
TEST(EmulateFloat, NarrowingIsRightForManyFloats) {
  std::mt19937 random(5);
  std::vector<uint32_t> values = floatBits();
  for (int k = 0; k < 20000; ++k)
    values.push_back(random());
  // These numbers cover the range of f16. Each number is at or near the midpoint between two f16
  // numbers.
  for (int k = 0; k < 20000; ++k)
    values.push_back((100 + random() % 50) << 23 | (random() % 2048) << 12 | random() % 3);
  std::vector<uint32_t> same = values;
  std::vector<uint16_t> f16 = runOp<uint16_t>("cvt.rn.f16.f32 %d, %a;", values, same, same);
  std::vector<uint16_t> bf16 = runOp<uint16_t>("cvt.rn.bf16.f32 %d, %a;", values, same, same);
  std::vector<uint16_t> down = runOp<uint16_t>("cvt.rz.f16.f32 %d, %a;", values, same, same);
  for (size_t k = 0; k < values.size(); ++k) {
    double value = asFloat(values[k]);
    ASSERT_EQ(f16[k], encode(value, formatF16, Rounding::NearestEven, false))
        << std::hex << values[k];
    ASSERT_EQ(bf16[k], encode(value, formatBF16, Rounding::NearestEven, false))
        << std::hex << values[k];
    if (value != value)
      continue;
    double found = decode(down[k], formatF16), next = decode(down[k] + 1, formatF16);
    ASSERT_LE(std::fabs(found), std::fabs(value));
    ASSERT_TRUE(std::isinf(next) || std::fabs(next) > std::fabs(value) || std::isinf(value))
        << value;
  }
}

TEST(EmulateFloat, HalfArithmeticRoundsOnce) {
  std::vector<uint16_t> h = {0,      0x8000, 1,      0x3ff,  0x400,  0x3c00, 0xbc00, 0x3c01,
                             0x7bff, 0xfbff, 0x7c00, 0x1234, 0x5678, 0x2e66, 0x0801};
  auto expected = [](const Format &format, double exact) {
    return uint16_t(encode(exact, format, Rounding::NearestEven, false));
  };
  for (bool isBrain : {false, true}) {
    const Format &format = isBrain ? formatBF16 : formatF16;
    std::string type = isBrain ? "bf16" : "f16";
    auto number = [&](uint16_t bits) { return decode(bits, format); };
    expectOp<uint16_t>(
        "add." + type + " %d, %a, %b;", h, h, none,
        [&](uint16_t a, uint16_t b, uint32_t) { return expected(format, number(a) + number(b)); });
    expectOp<uint16_t>(
        "mul." + type + " %d, %a, %b;", h, h, none,
        [&](uint16_t a, uint16_t b, uint32_t) { return expected(format, number(a) * number(b)); });
    // addToOdd() must return the exact sum or, if the sum is not a double, a neighbour of the sum
    // whose last bit is 1.
    expectOp<uint16_t>("fma.rn." + type + " %d, %a, %b, %c;", h, h, h,
                       [&](uint16_t a, uint16_t b, uint16_t c) {
                         long double exact = (long double)number(a) * number(b) + number(c);
                         double odd = addToOdd(number(a) * number(b), number(c));
                         EXPECT_TRUE(exact != exact || std::isinf(odd) ||
                                     std::fabs((double)exact - odd) <= std::fabs(odd) * 0x1p-52);
                         return expected(format, odd);
                       });
  }
  expectOp<uint32_t>(
      "add.f16x2 %d, %a, %b;", std::vector<uint32_t>{0x3c004000, 0x7bff0001},
      std::vector<uint32_t>{0x40003c00, 0x7bff0001}, none, [&](uint32_t a, uint32_t b, uint32_t) {
        auto half = [&](unsigned shift) {
          return uint32_t(expected(formatF16, decode(a >> shift & 0xffff, formatF16) +
                                                  decode(b >> shift & 0xffff, formatF16)));
        };
        return half(16) << 16 | half(0);
      });
}

TEST(EmulateFloat, Conversions) {
  auto f = floatBits();
  std::vector<int32_t> n = {0, 1, -1, 16777217, -16777219, INT32_MAX, INT32_MIN, 255, 256, -129};
  expectOp<uint32_t>("cvt.rn.f32.s32 %d, %a;", n, none, none,
                     [](int32_t a, uint32_t, uint32_t) { return asBits(float(a)); });
  expectOp<uint32_t>("cvt.rz.f32.s32 %d, %a;", n, none, none, [](int32_t a, uint32_t, uint32_t) {
    float nearest = a;
    return asBits(std::fabs(double(nearest)) > std::fabs(double(a)) ? std::nextafter(nearest, 0.0f)
                                                                    : nearest);
  });
  expectOp<int32_t>("cvt.rzi.s32.f32 %d, %a;", f, none, none, [](uint32_t a, uint32_t, uint32_t) {
    float v = asFloat(a);
    return v != v ? 0 : v >= 0x1p31f ? INT32_MAX : v < -0x1p31f ? INT32_MIN : int32_t(v);
  });
  expectOp<uint32_t>("cvt.rni.u32.f32 %d, %a;", f, none, none, [](uint32_t a, uint32_t, uint32_t) {
    float v = asFloat(a);
    return v != v || v < 0 ? 0 : v >= 0x1p32f ? ~0u : uint32_t(std::nearbyint(v));
  });
  expectOp<uint32_t>("cvt.rmi.f32.f32 %d, %a;", f, none, none,
                     [](uint32_t a, uint32_t, uint32_t) { return asBits(std::floor(asFloat(a))); });
  expectOp<uint32_t>("cvt.u32.s8 %d, %a;", std::vector<uint16_t>{0x7f, 0x80, 0xff, 0x1280}, none,
                     none, [](uint16_t a, uint32_t, uint32_t) { return uint32_t(int8_t(a)); });
  expectOp<uint16_t>("cvt.sat.s8.s32 %d, %a;", n, none, none, [](int32_t a, uint32_t, uint32_t) {
    return uint16_t(int16_t(std::max(-128, std::min(127, a))));
  });
  expectOp<uint32_t>("cvt.rn.bf16x2.f32 %d, %a, %b;", f, f, none,
                     [](uint32_t a, uint32_t b, uint32_t) {
                       return encode(asFloat(a), formatBF16, Rounding::NearestEven, false) << 16 |
                              encode(asFloat(b), formatBF16, Rounding::NearestEven, false);
                     });
  expectOp<uint32_t>(
      "cvt.rn.relu.f16x2.f32 %d, %a, %b;", f, f, none, [](uint32_t a, uint32_t b, uint32_t) {
        auto half = [](uint32_t v) {
          return encode(std::signbit(asFloat(v)) && asFloat(v) == asFloat(v) ? 0 : asFloat(v),
                        formatF16, Rounding::NearestEven, false);
        };
        return half(a) << 16 | half(b);
      });
  expectOp<uint32_t>("cvt.rna.tf32.f32 %d, %a;",
                     std::vector<uint32_t>{0x3f800fff, 0x3f801000, 0x3f801001, 0xbf803000}, none,
                     none, [](uint32_t a, uint32_t, uint32_t) { return (a + 0x1000) & ~0x1fffu; });
  std::vector<uint64_t> longs = {
      0, 1, 0x7fffffffffffffff, 0x8000000000000000, 0x100000000000001, 0x20000000000001, ~0ull};
  expectOp<uint32_t>("cvt.rn.f32.u64 %d, %a;", longs, none, none,
                     [](uint64_t a, uint32_t, uint32_t) { return asBits(float(a)); });
  expectOp<double>("cvt.rn.f64.s64 %d, %a;", longs, none, none,
                   [](uint64_t a, uint32_t, uint32_t) { return double(int64_t(a)); });
  expectOp<uint32_t>(
      "cvt.rn.satfinite.e4m3x2.f32 %h1, %a, %b; cvt.u32.u16 %d, %h1;",
      std::vector<uint32_t>{asBits(1.0f), asBits(448.0f), asBits(1000.0f), asBits(-0.001f)},
      std::vector<uint32_t>{asBits(1.0625f), asBits(-500.0f)}, none,
      [](uint32_t a, uint32_t b, uint32_t) {
        return encode(asFloat(a), formatE4M3, Rounding::NearestEven, true) << 8 |
               encode(asFloat(b), formatE4M3, Rounding::NearestEven, true);
      });
  EXPECT_EQ(encode(448.0, formatE4M3, Rounding::NearestEven, true), 0x7eu);
  EXPECT_EQ(decode(0x7e, formatE4M3), 448.0);
  EXPECT_EQ(decode(0x7b, formatE5M2), 57344.0);
}

/// Tests that the emulator rounds the results of approximate instructions correctly, and that it
/// replaces subnormal results by zero if the instruction has .ftz.
TEST(EmulateFloat, ApproximationsAreRounded) {
  auto unary = [&](const std::string &op, bool flushes, double (*exact)(double)) {
    expectFloat(op + " %d, %a;", flushes, [&](float a, float, float) { return float(exact(a)); });
  };
  unary("ex2.approx.ftz.f32", true, [](double a) { return std::exp2(a); });
  unary("ex2.approx.f32", false, [](double a) { return std::exp2(a); });
  unary("lg2.approx.ftz.f32", true, [](double a) { return std::log2(a); });
  unary("rcp.approx.ftz.f32", true, [](double a) { return 1 / a; });
  unary("rsqrt.approx.f32", false, [](double a) { return 1 / std::sqrt(a); });
  unary("sqrt.approx.f32", false, [](double a) { return std::sqrt(a); });
  unary("sin.approx.f32", false, [](double a) { return std::sin(a); });
  unary("tanh.approx.f32", false, [](double a) { return std::tanh(a); });
}
