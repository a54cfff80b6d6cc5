//===- Halves.cpp - Arithmetic of f16 and bf16 ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Half Precision Floating Point Instructions: add, sub, mul, fma, neg, abs,
// min, max" and their packed forms. A sum or product of two halves is computed in float and then
// rounded to a half. The half is then the correctly rounded result. fma computes its sum in double
// with rounding to odd, and then rounds the sum to a half.
//
//===----------------------------------------------------------------------===//

#include "emulator/arithmetic/FloatOps.h"

using namespace fsdprt::emulate;

namespace {
enum : uint8_t { Flushes = 1, Saturates = 2, IsRelu = 4, GivesNan = 8 };

struct Add {
  static float apply(float a, float b, float) { return a + b; }
};
struct Sub {
  static float apply(float a, float b, float) { return a - b; }
};
struct Mul {
  static float apply(float a, float b, float) { return a * b; }
};
struct Min {};
struct Max {};
struct Fma {};
struct Neg {};
struct Abs {};

template <typename F>
uint16_t flush(uint16_t half) {
  uint16_t exponent = ((1u << F::format.exponent) - 1) << F::format.mantissa;
  return half & exponent ? half : half & 0x8000;
}
template <typename F>
bool isNan(uint16_t half) {
  return (half & 0x7fff) > (((1u << F::format.exponent) - 1) << F::format.mantissa);
}

template <typename F>
uint16_t finishHalf(uint16_t half, uint8_t how) {
  if (how & Flushes)
    half = flush<F>(half);
  if (how & Saturates)
    return F::narrow(saturated(F::widen(half)));
  if (how & IsRelu && !isNan<F>(half) && half & 0x8000)
    return 0;
  return half;
}

template <typename Op, typename F>
struct OneHalf {
  static uint16_t apply(uint16_t a, uint16_t b, uint16_t c, uint8_t how) {
    return F::narrow(Op::apply(F::widen(a), F::widen(b), F::widen(c)));
  }
};
template <typename F>
struct OneHalf<Fma, F> {
  static uint16_t apply(uint16_t a, uint16_t b, uint16_t c, uint8_t how) {
    double sum = addToOdd(double(F::widen(a)) * F::widen(b), F::widen(c));
    return encode(sum, F::format, Rounding::NearestEven, false);
  }
};
template <typename F>
struct OneHalf<Neg, F> {
  static uint16_t apply(uint16_t a, uint16_t, uint16_t, uint8_t) { return a ^ 0x8000; }
};
template <typename F>
struct OneHalf<Abs, F> {
  static uint16_t apply(uint16_t a, uint16_t, uint16_t, uint8_t) { return a & 0x7fff; }
};
template <bool isMin, typename F>
uint16_t extreme(uint16_t a, uint16_t b, uint8_t how) {
  if (isNan<F>(a) || isNan<F>(b))
    return how & GivesNan || (isNan<F>(a) && isNan<F>(b)) ? F::format.nan : isNan<F>(a) ? b : a;
  float x = F::widen(a), y = F::widen(b);
  bool isFirst = x < y || (x == y && (a & 0x8000));
  return isFirst == isMin ? a : b;
}
template <typename F>
struct OneHalf<Min, F> {
  static uint16_t apply(uint16_t a, uint16_t b, uint16_t, uint8_t how) {
    return extreme<true, F>(a, b, how);
  }
};
template <typename F>
struct OneHalf<Max, F> {
  static uint16_t apply(uint16_t a, uint16_t b, uint16_t, uint8_t how) {
    return extreme<false, F>(a, b, how);
  }
};

/// Applies `Op` to all active lanes. T is uint16_t if a register contains one number, and uint32_t
/// if a register contains two numbers.
template <typename Op, typename F, typename T>
Step halves(Warp &warp, const Instruction &i, LaneMask active) {
  T result[warpSize];
  uint8_t how = i.modifier;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    T a = warp.at<T>(i.in[0])[lane], b = i.inCount > 1 ? warp.at<T>(i.in[1])[lane] : 0,
      c = i.inCount > 2 ? warp.at<T>(i.in[2])[lane] : 0;
    T value = 0;
    for (unsigned shift = 0; shift < 8 * sizeof(T); shift += 16) {
      uint16_t x = a >> shift, y = b >> shift, z = c >> shift;
      if (how & Flushes)
        x = flush<F>(x), y = flush<F>(y), z = flush<F>(z);
      value |= T(finishHalf<F>(OneHalf<Op, F>::apply(x, y, z, how), how)) << shift;
    }
    result[lane] = value;
  }
  keep(warp.at<T>(i.out[0]), result, active);
  return Step::Next;
}

template <typename Op>
Handler halfHandler(Type type) {
  switch (type) {
  case Type::F16:
    return halves<Op, Half, uint16_t>;
  case Type::F16x2:
    return halves<Op, Half, uint32_t>;
  case Type::BF16:
    return halves<Op, Brain, uint16_t>;
  default:
    return halves<Op, Brain, uint32_t>;
  }
}

Handler handlerNamed(std::string_view name, Type type) {
  if (name == "add")
    return halfHandler<Add>(type);
  if (name == "sub")
    return halfHandler<Sub>(type);
  if (name == "mul")
    return halfHandler<Mul>(type);
  if (name == "fma")
    return halfHandler<Fma>(type);
  if (name == "min")
    return halfHandler<Min>(type);
  if (name == "max")
    return halfHandler<Max>(type);
  if (name == "neg")
    return halfHandler<Neg>(type);
  return name == "abs" ? halfHandler<Abs>(type) : nullptr;
}
} // namespace

bool fsdprt::emulate::decodeHalf(Decoder &d) {
  std::string_view name = d.modifiers.name();
  Type type = d.typeOneOf({Type::F16, Type::F16x2, Type::BF16, Type::BF16x2});
  Handler run = handlerNamed(name, type);
  if (!run)
    return false;
  if (d.modifiers.has("f32"))
    d.fail("mixed precision is not supported");
  uint8_t how = 0;
  how |= d.modifiers.take("ftz") ? Flushes : 0;
  how |= d.modifiers.take("sat") ? Saturates : 0;
  how |= d.modifiers.take("relu") ? IsRelu : 0;
  how |= d.modifiers.take("NaN") ? GivesNan : 0;
  d.modifiers.take("rn");
  unsigned count = name == "fma" ? 3 : name == "neg" || name == "abs" ? 1 : 2;
  d.operandCount(count + 1, count + 1);
  std::vector<Slot> ins;
  for (unsigned k = 1; k <= count; ++k)
    ins.push_back(d.source(k, type));
  d.emit(run, {d.destination(0, type)}, ins).modifier = how;
  return true;
}
