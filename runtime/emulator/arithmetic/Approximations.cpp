//===- Approximations.cpp - Approximate functions ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Floating Point Instructions: rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh" and
// "Half Precision Floating Point Instructions: tanh, ex2".
//
// Error model: the emulator computes a function in double with the library of the host. The
// emulator then rounds the result to the type of the instruction. The result of a GPU differs from
// the exact result by at most the bound that the PTX ISA gives (see the table in
// docs/explanation/emulator.md). The result of the emulator therefore differs from the result of a
// GPU by at most this bound plus half a unit in the last place.
//
//===----------------------------------------------------------------------===//

#include "emulator/arithmetic/FloatOps.h"

using namespace fsdprt::emulate;

namespace {
struct Rcp {
  static double apply(double a) { return 1 / a; }
};
struct Sqrt {
  static double apply(double a) { return std::sqrt(a); }
};
struct Rsqrt {
  static double apply(double a) { return 1 / std::sqrt(a); }
};
struct Sin {
  static double apply(double a) { return std::sin(a); }
};
struct Cos {
  static double apply(double a) { return std::cos(a); }
};
struct Lg2 {
  static double apply(double a) { return std::log2(a); }
};
struct Ex2 {
  static double apply(double a) { return std::exp2(a); }
};
struct Tanh {
  static double apply(double a) { return std::tanh(a); }
};

template <typename Op>
Step single(Warp &warp, const Instruction &i, LaneMask active) {
  bool flushes = i.modifier2 & 1;
  float result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    if (!(active >> lane & 1))
      continue;
    float a = warp.at<float>(i.in[0])[lane];
    float value = Op::apply(flushes ? flushed(a) : a);
    result[lane] = canonical(flushes ? flushed(value) : value);
  }
  keep(warp.at<float>(i.out[0]), result, active);
  return Step::Next;
}

template <typename Op>
Step wide(Warp &warp, const Instruction &i, LaneMask active) {
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (active >> lane & 1)
      warp.at<double>(i.out[0])[lane] = Op::apply(warp.at<double>(i.in[0])[lane]);
  return Step::Next;
}

template <typename Op, typename F, typename T>
Step halves(Warp &warp, const Instruction &i, LaneMask active) {
  T result[warpSize] = {};
  for (unsigned lane = 0; lane < warpSize; ++lane)
    for (unsigned shift = 0; shift < 8 * sizeof(T); shift += 16) {
      float a = F::widen(warp.at<T>(i.in[0])[lane] >> shift);
      result[lane] |= T(encode(Op::apply(i.modifier2 & 1 ? flushed(a) : a), F::format,
                               Rounding::NearestEven, false))
                      << shift;
    }
  keep(warp.at<T>(i.out[0]), result, active);
  return Step::Next;
}

template <typename Op>
Handler handlerFor(Type type) {
  switch (type) {
  case Type::F16:
    return halves<Op, Half, uint16_t>;
  case Type::F16x2:
    return halves<Op, Half, uint32_t>;
  case Type::BF16:
    return halves<Op, Brain, uint16_t>;
  case Type::BF16x2:
    return halves<Op, Brain, uint32_t>;
  case Type::F64:
    return wide<Op>;
  default:
    return single<Op>;
  }
}

Handler handlerNamed(std::string_view name, Type type) {
  if (name == "rcp")
    return handlerFor<Rcp>(type);
  if (name == "sqrt")
    return handlerFor<Sqrt>(type);
  if (name == "rsqrt")
    return handlerFor<Rsqrt>(type);
  if (name == "sin")
    return handlerFor<Sin>(type);
  if (name == "cos")
    return handlerFor<Cos>(type);
  if (name == "lg2")
    return handlerFor<Lg2>(type);
  return name == "ex2" ? handlerFor<Ex2>(type) : handlerFor<Tanh>(type);
}
} // namespace

bool fsdprt::emulate::decodeApproximate(Decoder &d) {
  std::string_view name = d.modifiers.name();
  d.operandCount(2, 2);
  int rounding = d.modifiers.takeOneOf({"rn", "rz", "rm", "rp"});
  bool isApproximate = d.modifiers.take("approx"), flushes = d.modifiers.take("ftz");
  bool canRound = name == "rcp" || name == "sqrt", isHalf = name == "ex2" || name == "tanh";
  Type type = isHalf ? d.typeOneOf({Type::F32, Type::F16, Type::F16x2, Type::BF16, Type::BF16x2})
              : canRound || name == "rsqrt" ? d.typeOneOf({Type::F32, Type::F64})
                                            : d.typeOneOf({Type::F32});
  if (!canRound && rounding >= 0)
    d.fail("%s has no rounding", std::string(name).c_str());
  if (isApproximate == (rounding >= 0))
    d.fail("expected %s.approx", canRound ? "a rounding such as .rn, or " : "");
  Handler run = rounding >= 0 ? roundedHandler(name, type) : handlerNamed(name, type);
  Instruction &i = d.emit(run, {d.destination(0, type)}, {d.source(1, type)});
  i.modifier = rounding >= 0 ? rounding : 0;
  i.modifier2 = flushes;
  return true;
}
