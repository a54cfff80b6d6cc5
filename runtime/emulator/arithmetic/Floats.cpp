//===- Floats.cpp - Arithmetic of f32 and f64 -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Floating Point Instructions: add, sub, mul, fma, mad, div, abs, neg, min,
// max, testp, copysign". The functions in this file round to nearest even, as the host does.
// RoundedFloats.cpp implements the other rounding modes, and Halves.cpp implements the types f16
// and bf16. On hardware, the results of div.approx and div.full may be wrong by two units in the
// last place. The emulator rounds these results correctly.
//
//===----------------------------------------------------------------------===//

#include "emulator/arithmetic/FloatOps.h"

using namespace fsdprt::emulate;

namespace {
template <bool flushes>
FSDPRT_INLINE float in(float value) {
  return flushes ? flushed(value) : value;
}

/// With .ftz, replaces subnormal operands and results of an f32 operation by zeros. With .sat,
/// clamps the result to [0, 1].
template <typename Op, bool flushes, bool saturates>
struct Single {
  static FSDPRT_INLINE float out(float value) {
    value = flushes ? flushed(value) : value;
    return saturates ? saturated(value) : canonical(value);
  }
  static FSDPRT_INLINE float apply(float a) { return out(Op::apply(in<flushes>(a))); }
  static FSDPRT_INLINE float apply(float a, float b) {
    return out(Op::apply(in<flushes>(a), in<flushes>(b)));
  }
  static FSDPRT_INLINE float apply(float a, float b, float c) {
    return out(Op::apply(in<flushes>(a), in<flushes>(b), in<flushes>(c)));
  }
};

struct Add {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return a + b;
  }
};
struct Sub {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return a - b;
  }
};
struct Mul {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return a * b;
  }
};
struct Div {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return a / b;
  }
};
/// Implements div.approx. A finite divisor above 2^126 gives 0, or NaN if the dividend is infinite.
struct DivApprox {
  static FSDPRT_INLINE float apply(float a, float b) {
    float magnitude = std::fabs(b), quotient = a / b;
    bool isLarge = magnitude > 0x1p126f && magnitude < INFINITY;
    return isLarge ? (std::fabs(a) < INFINITY ? std::copysign(0.0f, quotient) : NAN) : quotient;
  }
};
struct Fma {
  static FSDPRT_INLINE float apply(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static FSDPRT_INLINE double apply(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
struct Abs {
  static FSDPRT_INLINE float apply(float a) { return std::fabs(a); }
  static FSDPRT_INLINE double apply(double a) { return std::fabs(a); }
};
struct Neg {
  template <typename T>
  static FSDPRT_INLINE T apply(T a) {
    return -a;
  }
};
/// Implements min and max. If one operand is NaN, the result is the other operand. With the
/// modifier .NaN, the result is NaN instead. -0 is less than +0.
template <bool isMin, bool givesNan>
struct Extreme {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    bool isFirst = a < b || (a == b && std::signbit(a));
    T ordered = isFirst == isMin ? a : b;
    if (a != a || b != b)
      return givesNan ? T(NAN) : a != a ? b : a;
    return ordered;
  }
};
template <bool isMin, bool givesNan>
struct ExtremeXorSign {
  static FSDPRT_INLINE float apply(float a, float b) {
    float magnitude = Extreme<isMin, givesNan>::apply(std::fabs(a), std::fabs(b));
    return std::copysign(magnitude, std::signbit(a) != std::signbit(b) ? -1.0f : 1.0f);
  }
};
struct CopySign {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return std::copysign(b, a);
  }
};

template <typename Op>
Handler singleBinary(bool flushes, bool saturates) {
  if (flushes)
    return saturates ? binary<Single<Op, true, true>, float>()
                     : binary<Single<Op, true, false>, float>();
  return saturates ? binary<Single<Op, false, true>, float>()
                   : binary<Single<Op, false, false>, float>();
}
template <typename Op>
Handler singleTernary(bool flushes, bool saturates) {
  if (flushes)
    return saturates ? ternary<Single<Op, true, true>, float>()
                     : ternary<Single<Op, true, false>, float>();
  return saturates ? ternary<Single<Op, false, true>, float>()
                   : ternary<Single<Op, false, false>, float>();
}
template <typename Op>
Handler singleUnary(bool flushes) {
  return flushes ? unary<Single<Op, true, false>, float>()
                 : unary<Single<Op, false, false>, float>();
}
template <bool isMin, bool givesNan>
Handler extreme(Type type, bool flushes, bool xorsSign) {
  if (type == Type::F64)
    return binary<Extreme<isMin, givesNan>, double>();
  return xorsSign ? singleBinary<ExtremeXorSign<isMin, givesNan>>(flushes, false)
                  : singleBinary<Extreme<isMin, givesNan>>(flushes, false);
}

/// Implements testp for the properties finite, infinite, number, notanumber, normal and subnormal.
template <typename T>
Step testProperty(Warp &warp, const Instruction &i, LaneMask active) {
  LaneMask result = 0;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    int kind = std::fpclassify(warp.at<T>(i.in[0])[lane]);
    bool tests[] = {kind != FP_INFINITE && kind != FP_NAN,
                    kind == FP_INFINITE,
                    kind != FP_NAN,
                    kind == FP_NAN,
                    kind == FP_NORMAL,
                    kind == FP_SUBNORMAL};
    result |= LaneMask(tests[i.modifier]) << lane;
  }
  keepBits(warp.predicate(i.out[0]), result, active);
  return Step::Next;
}
} // namespace

static Handler nearestHandler(std::string_view name, Type type, bool flushes, bool saturates) {
  bool isDouble = type == Type::F64;
  if (name == "add")
    return isDouble ? binary<Add, double>() : singleBinary<Add>(flushes, saturates);
  if (name == "sub")
    return isDouble ? binary<Sub, double>() : singleBinary<Sub>(flushes, saturates);
  if (name == "mul")
    return isDouble ? binary<Mul, double>() : singleBinary<Mul>(flushes, saturates);
  if (name == "div")
    return isDouble ? binary<Div, double>() : singleBinary<Div>(flushes, saturates);
  return isDouble ? ternary<Fma, double>() : singleTernary<Fma>(flushes, saturates);
}

static void decodeArithmetic(Decoder &d, Type type) {
  std::string_view name = d.modifiers.name();
  bool isFused = name == "fma" || name == "mad";
  int rounding = d.modifiers.takeOneOf({"rn", "rz", "rm", "rp"});
  bool isApproximate = name == "div" && rounding < 0;
  int full = isApproximate ? d.modifiers.takeOneOf({"full", "approx"}) : 0;
  bool flushes = d.modifiers.take("ftz"), saturates = d.modifiers.take("sat");
  if ((isFused && rounding < 0) || full < 0)
    d.fail("expected a rounding such as .rn%s", full < 0 ? ", .approx or .full" : "");
  if (type == Type::F64 && (flushes || saturates || isApproximate))
    d.fail("f64 has no .ftz, .sat, .approx or .full");
  d.operandCount(3 + isFused, 3 + isFused);
  std::vector<Slot> ins{d.source(1, type), d.source(2, type)};
  if (isFused)
    ins.push_back(d.source(3, type));
  Handler run = rounding > 0 ? roundedHandler(name, type)
                : full == 1  ? singleBinary<DivApprox>(flushes, false)
                             : nearestHandler(name, type, flushes, saturates);
  Instruction &i = d.emit(run, {d.destination(0, type)}, ins);
  i.modifier = rounding > 0 ? rounding : 0;
  i.modifier2 = flushes | saturates << 1;
}

static void decodeSignsAndExtremes(Decoder &d, Type type) {
  std::string_view name = d.modifiers.name();
  bool flushes = d.modifiers.take("ftz"), isDouble = type == Type::F64;
  if (isDouble && flushes)
    d.fail("f64 has no .ftz");
  if (name == "abs" || name == "neg") {
    d.operandCount(2, 2);
    Handler run = name == "abs" ? (isDouble ? unary<Abs, double>() : singleUnary<Abs>(flushes))
                                : (isDouble ? unary<Neg, double>() : singleUnary<Neg>(flushes));
    d.emit(run, {d.destination(0, type)}, {d.source(1, type)});
    return;
  }
  bool givesNan = d.modifiers.take("NaN"), xorsSign = d.modifiers.take("xorsign");
  if (xorsSign && !d.modifiers.take("abs"))
    d.fail("expected .xorsign.abs");
  if (isDouble && (givesNan || xorsSign))
    d.fail("f64 has no .NaN or .xorsign");
  d.operandCount(3, 3);
  Handler run = name == "min" ? (givesNan ? extreme<true, true>(type, flushes, xorsSign)
                                          : extreme<true, false>(type, flushes, xorsSign))
                              : (givesNan ? extreme<false, true>(type, flushes, xorsSign)
                                          : extreme<false, false>(type, flushes, xorsSign));
  d.emit(run, {d.destination(0, type)}, {d.source(1, type), d.source(2, type)});
}

bool fsdprt::emulate::decodeFloat(Decoder &d) {
  std::string_view name = d.modifiers.name();
  if (name == "testp") {
    d.operandCount(2, 2);
    int test = d.modifiers.takeOneOf(
        {"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
    Type type = d.typeOneOf({Type::F32, Type::F64});
    if (test < 0)
      d.fail("expected a test such as .finite");
    d.emit(type == Type::F32 ? testProperty<float> : testProperty<double>,
           {d.destination(0, Type::Pred)}, {d.source(1, type)})
        .modifier = test;
    return true;
  }
  for (std::string_view half : {"f16", "f16x2", "bf16", "bf16x2"})
    if (d.modifiers.has(half))
      return decodeHalf(d);
  Type type = d.typeOneOf({Type::F32, Type::F64});
  if (name == "copysign") {
    d.operandCount(3, 3);
    d.emit(type == Type::F32 ? binary<CopySign, float>() : binary<CopySign, double>(),
           {d.destination(0, type)}, {d.source(1, type), d.source(2, type)});
  } else if (name == "abs" || name == "neg" || name == "min" || name == "max") {
    decodeSignsAndExtremes(d, type);
  } else if (name == "add" || name == "sub" || name == "mul" || name == "fma" || name == "mad" ||
             name == "div") {
    decodeArithmetic(d, type);
  } else {
    return false;
  }
  return true;
}
