//===- RoundedFloats.cpp - Float arithmetic in any rounding mode *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements .rz, .rm and .rp (PTX ISA, "Rounding Modifiers"). A handler sets the rounding mode of
// the host before the loop over lanes, and restores the previous mode after the loop. This file is
// compiled with -frounding-math.
//
//===----------------------------------------------------------------------===//

#include "emulator/arithmetic/FloatOps.h"
#include <cfenv>

using namespace fsdprt::emulate;

namespace {
class RoundingMode {
public:
  explicit RoundingMode(unsigned mode) : before(std::fegetround()) {
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(modes[mode]);
  }
  ~RoundingMode() { std::fesetround(before); }

private:
  int before;
};

struct Add {
  template <typename T>
  static T apply(T a, T b, T) {
    return a + b;
  }
};
struct Sub {
  template <typename T>
  static T apply(T a, T b, T) {
    return a - b;
  }
};
struct Mul {
  template <typename T>
  static T apply(T a, T b, T) {
    return a * b;
  }
};
struct Div {
  template <typename T>
  static T apply(T a, T b, T) {
    return a / b;
  }
};
struct Fma {
  template <typename T>
  static T apply(T a, T b, T c) {
    return std::fma(a, b, c);
  }
};
struct Rcp {
  template <typename T>
  static T apply(T a, T, T) {
    return 1 / a;
  }
};
struct Sqrt {
  template <typename T>
  static T apply(T a, T, T) {
    return std::sqrt(a);
  }
};

template <typename Op, typename T>
Step rounded(Warp &warp, const Instruction &i, LaneMask active) {
  bool flushes = i.modifier2 & 1, saturates = i.modifier2 & 2;
  auto in = [&](unsigned k, unsigned lane) {
    T value = k < i.inCount ? warp.at<T>(i.in[k])[lane] : T(0);
    if constexpr (sizeof(T) == 4)
      value = flushes ? flushed(value) : value;
    return value;
  };
  RoundingMode mode(i.modifier);
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    if (!(active >> lane & 1))
      continue;
    T value = Op::apply(in(0, lane), in(1, lane), in(2, lane));
    if constexpr (sizeof(T) == 4) {
      value = flushes ? flushed(value) : value;
      value = saturates ? saturated(value) : canonical(value);
    }
    warp.at<T>(i.out[0])[lane] = value;
  }
  return Step::Next;
}

template <typename Op>
Handler handlerFor(Type type) {
  return type == Type::F32 ? rounded<Op, float> : rounded<Op, double>;
}
} // namespace

Handler fsdprt::emulate::roundedHandler(std::string_view name, Type type) {
  if (name == "add")
    return handlerFor<Add>(type);
  if (name == "sub")
    return handlerFor<Sub>(type);
  if (name == "mul")
    return handlerFor<Mul>(type);
  if (name == "div")
    return handlerFor<Div>(type);
  if (name == "rcp")
    return handlerFor<Rcp>(type);
  if (name == "sqrt")
    return handlerFor<Sqrt>(type);
  return handlerFor<Fma>(type);
}
