//===- Formats.h - Floating-point numbers as bits ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares conversions between float, double and the narrow formats. encode() rounds only once and
// supports all rounding modes. The inline conversions round to nearest even, and compilers can
// vectorise them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_ARITHMETIC_FORMATS_H
#define FSDPRT_EMULATOR_ARITHMETIC_FORMATS_H

#include "emulator/machine/Lanes.h"
#include <cmath>
#include <cstring>

namespace fsdprt::emulate {

template <typename To, typename From>
FSDPRT_INLINE To bitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

/// The NaN that f32 instructions return as a result (PTX ISA, "Floating-Point Instructions").
constexpr uint32_t canonicalNan = 0x7fffffff;

/// Returns a zero of the same sign if the number is subnormal, and otherwise the number itself.
FSDPRT_INLINE float flushed(float value) {
  uint32_t bits = bitsAs<uint32_t>(value);
  return bitsAs<float>(bits & 0x7f800000 ? bits : bits & 0x80000000);
}
FSDPRT_INLINE float canonical(float value) {
  return value == value ? value : bitsAs<float>(canonicalNan);
}
/// Applies the modifier .sat: clamps a number to [0, 1], and replaces NaN with 0.
FSDPRT_INLINE float saturated(float value) { return value > 0 ? (value < 1 ? value : 1) : 0; }
FSDPRT_INLINE double saturated(double value) { return value > 0 ? (value < 1 ? value : 1) : 0; }

enum class Rounding : uint8_t { NearestEven, Zero, Down, Up, NearestAway };

struct Format {
  uint8_t mantissa, exponent; ///< numbers of bits
  bool hasInfinity;           ///< if false, the format has no infinity, and all bits of NaN are 1
  uint32_t nan;
};
constexpr Format formatF16{10, 5, true, 0x7fff}, formatBF16{7, 8, true, 0x7fff},
    formatTF32{10, 8, true, 0x3ffff}, formatF32{23, 8, true, canonicalNan},
    formatE4M3{3, 4, false, 0x7f}, formatE5M2{2, 5, true, 0x7f};

/// Encodes a number. If `isFinite` is true, a number that is too large becomes the largest finite
/// number.
uint32_t encode(double value, const Format &format, Rounding rounding, bool isFinite);
double decode(uint32_t bits, const Format &format);

//===- f16 and bf16 -------------------------------------------------------===//

struct Half {
  static constexpr const Format &format = formatF16;
  static FSDPRT_INLINE float widen(uint16_t half) {
    uint32_t sign = uint32_t(half & 0x8000) << 16, magnitude = uint32_t(half & 0x7fff) << 13;
    // Multiply by 2^112 to correct the exponent. This is correct for normal and for subnormal
    // numbers.
    float scaled = bitsAs<float>(magnitude) * 0x1p112f;
    uint32_t bits = magnitude >= 0x0f800000 ? magnitude | 0x7f800000 : bitsAs<uint32_t>(scaled);
    return bitsAs<float>(bits | sign);
  }
  static FSDPRT_INLINE uint16_t narrow(float value) {
    uint32_t bits = bitsAs<uint32_t>(value), sign = bits >> 16 & 0x8000,
             magnitude = bits & 0x7fffffff;
    // If the result is subnormal, the addition of 0.5 rounds the number at the last place of the
    // result.
    uint32_t small = bitsAs<uint32_t>(bitsAs<float>(magnitude) + 0.5f) - 0x3f000000;
    uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
    uint32_t finite = magnitude < 0x38800000 ? small : normal;
    uint32_t result = magnitude >= 0x477ff000 ? 0x7c00 : finite;
    return magnitude > 0x7f800000 ? 0x7fff : result | sign;
  }
};

struct Brain {
  static constexpr const Format &format = formatBF16;
  static FSDPRT_INLINE float widen(uint16_t brain) { return bitsAs<float>(uint32_t(brain) << 16); }
  static FSDPRT_INLINE uint16_t narrow(float value) {
    uint32_t bits = bitsAs<uint32_t>(value);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded;
  }
};

/// Returns a + b. If the sum is not exact, the last bit of the result is 1. If the result is later
/// rounded to at most 51 bits, the outcome is the same as for the exact sum.
FSDPRT_INLINE double addToOdd(double a, double b) {
  double sum = a + b, shadow = sum - a, error = (a - (sum - shadow)) + (b - shadow);
  uint64_t bits = bitsAs<uint64_t>(sum);
  if (error != 0 && !(bits & 1) && std::fabs(sum) <= 0x1.fffffffffffffp1023)
    bits += (error > 0) == (sum > 0) ? 1 : uint64_t(-1);
  return bitsAs<double>(bits);
}

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_ARITHMETIC_FORMATS_H
