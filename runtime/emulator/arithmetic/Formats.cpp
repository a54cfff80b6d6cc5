//===- Formats.cpp - Floating-point numbers as bits -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A double can represent all numbers of the narrow formats. encode() takes a double as its
// argument, and rounds its mantissa only once.
//
//===----------------------------------------------------------------------===//

#include "emulator/arithmetic/Formats.h"

using namespace fsdprt::emulate;

double fsdprt::emulate::decode(uint32_t bits, const Format &format) {
  uint32_t ones = (1u << format.exponent) - 1, exponent = bits >> format.mantissa & ones;
  uint32_t mantissa = bits & ((1u << format.mantissa) - 1);
  bool isNegative = bits >> (format.mantissa + format.exponent) & 1;
  int bias = static_cast<int>(ones >> 1);
  double value;
  if (format.hasInfinity && exponent == ones)
    value = mantissa ? NAN : INFINITY;
  else if (!format.hasInfinity && exponent == ones && mantissa == (1u << format.mantissa) - 1)
    value = NAN;
  else if (exponent)
    value = std::ldexp(double(mantissa | 1u << format.mantissa),
                       int(exponent) - bias - format.mantissa);
  else
    value = std::ldexp(double(mantissa), 1 - bias - format.mantissa);
  return isNegative ? -value : value;
}

/// Returns true if the magnitude must be rounded up. `kept` is the magnitude without its fraction,
/// and `rest` is this fraction. The unit of both numbers is the last place of the result.
static bool roundsAway(double rest, uint64_t kept, bool isNegative, Rounding rounding) {
  switch (rounding) {
  case Rounding::NearestEven:
    return rest > 0.5 || (rest == 0.5 && (kept & 1));
  case Rounding::NearestAway:
    return rest >= 0.5;
  case Rounding::Zero:
    return false;
  case Rounding::Down:
    return rest > 0 && isNegative;
  case Rounding::Up:
    return rest > 0 && !isNegative;
  }
  return false;
}

uint32_t fsdprt::emulate::encode(double value, const Format &format, Rounding rounding,
                                 bool isFinite) {
  if (value != value)
    return format.nan;
  bool isNegative = std::signbit(value);
  uint32_t sign = uint32_t(isNegative) << (format.mantissa + format.exponent);
  uint32_t ones = (1u << format.exponent) - 1;
  uint32_t infinity = ones << format.mantissa,
           largest = format.hasInfinity ? infinity - 1 : infinity + (1u << format.mantissa) - 2;
  uint32_t overflow = isFinite ? largest : format.hasInfinity ? infinity : format.nan;
  double magnitude = std::fabs(value);
  if (std::isinf(value))
    return sign | overflow;
  int bias = static_cast<int>(ones >> 1), exponent = 0;
  // frexp() sets `exponent` such that magnitude / 2^exponent is in [0.5, 1).
  std::frexp(magnitude, &exponent);
  exponent = magnitude == 0 || exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
  // `scaled` is the magnitude, measured in units of the last place of the result.
  double scaled = std::ldexp(magnitude, format.mantissa - exponent);
  double whole = std::floor(scaled);
  uint64_t kept = static_cast<uint64_t>(whole);
  kept += roundsAway(scaled - whole, kept, isNegative, rounding);
  // If the number is normal, `kept` contains the hidden bit, which adds 1 to the exponent field.
  uint64_t bits = kept;
  if (exponent > 1 - bias)
    bits += uint64_t(exponent + bias - 1) << format.mantissa;
  if (bits > largest) {
    bool staysFinite = rounding == Rounding::Zero || (rounding == Rounding::Down && !isNegative) ||
                       (rounding == Rounding::Up && isNegative);
    return sign | (staysFinite ? largest : overflow);
  }
  return sign | static_cast<uint32_t>(bits);
}
