//===- Convert.cpp - Conversions between types ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Data Movement and Conversion Instructions: cvt". The source is converted to
// a 128-bit integer or to a double. These types can represent all values of the source format. The
// result is then rounded only once. For conversions that occur often, there are separate loops,
// which are vectorised.
//
//===----------------------------------------------------------------------===//

#include "emulator/arithmetic/Formats.h"
#include "emulator/machine/Decoder.h"

using namespace fsdprt::emulate;

namespace {
__extension__ typedef __int128 Integer;

struct Conversion {
  Type to, from;
  uint8_t toSize, fromSize; ///< sizes of the registers, in bytes
  Rounding rounding = Rounding::NearestEven;
  bool isInteger = false; ///< true for modifiers such as .rni, which round to an integer
  bool flushes = false, saturates = false, isFinite = false, isRelu = false;
};

struct Value {
  bool isFloat;
  double number;
  Integer integer;
};

const Format *formatOf(Type type) {
  switch (type) {
  case Type::F16:
  case Type::F16x2:
    return &formatF16;
  case Type::BF16:
  case Type::BF16x2:
    return &formatBF16;
  case Type::TF32:
    return &formatTF32;
  case Type::F32:
    return &formatF32;
  case Type::E4M3x2:
    return &formatE4M3;
  case Type::E5M2x2:
    return &formatE5M2;
  default:
    return nullptr;
  }
}

Value valueOf(uint64_t bits, Type type, bool flushes) {
  unsigned size = 8 * sizeOf(type);
  if (type == Type::F64)
    return {true, bitsAs<double>(bits), 0};
  if (type == Type::F32) {
    float value = bitsAs<float>(uint32_t(bits));
    return {true, flushes ? flushed(value) : value, 0};
  }
  if (const Format *format = formatOf(type))
    return {true, decode(bits, *format), 0};
  if (isSigned(type))
    return {false, 0, size < 64 ? int64_t(bits << (64 - size)) >> (64 - size) : int64_t(bits)};
  return {false, 0, size < 64 ? bits & ((uint64_t(1) << size) - 1) : bits};
}

double roundToInteger(double value, Rounding rounding) {
  switch (rounding) {
  case Rounding::Zero:
    return std::trunc(value);
  case Rounding::Down:
    return std::floor(value);
  case Rounding::Up:
    return std::ceil(value);
  default:
    return std::nearbyint(value);
  }
}

/// Converts an integer to double. If no double is equal to the integer, returns that neighbouring
/// double whose last bit is 1. If the result is later rounded to a narrower format, the outcome is
/// the same as if the integer had been rounded directly to this format.
double toOdd(Integer value) {
  bool isNegative = value < 0;
  uint64_t magnitude = isNegative ? -value : value;
  unsigned shift = magnitude >> 53 ? 11 : 0;
  uint64_t kept = magnitude >> shift | ((magnitude & ((uint64_t(1) << shift) - 1)) != 0);
  double result = std::ldexp(double(kept), shift);
  return isNegative ? -result : result;
}

double toDouble(Integer value, Rounding rounding) {
  double nearest = double(value);
  if (std::fabs(nearest) < 0x1p53 || Integer(nearest) == value)
    return nearest;
  bool isAbove = Integer(nearest) > value;
  if (isAbove && (rounding == Rounding::Down || (rounding == Rounding::Zero && value > 0)))
    return std::nextafter(nearest, -INFINITY);
  if (!isAbove && (rounding == Rounding::Up || (rounding == Rounding::Zero && value < 0)))
    return std::nextafter(nearest, INFINITY);
  return nearest;
}

/// Returns the value as an integer of the type `how.to`. A float is clamped to the range of this
/// type. An integer is clamped only if the instruction has .sat.
uint64_t integerOf(const Value &value, const Conversion &how) {
  unsigned bits = 8 * sizeOf(how.to);
  Integer least = isSigned(how.to) ? -(Integer(1) << (bits - 1)) : 0;
  Integer most = isSigned(how.to) ? (Integer(1) << (bits - 1)) - 1 : (Integer(1) << bits) - 1;
  Integer integer = value.integer;
  if (value.isFloat) {
    if (value.number != value.number)
      return how.from == Type::F64 || bits == 64 ? uint64_t(1) << (bits - 1) : 0;
    double whole = roundToInteger(value.number, how.rounding);
    integer = whole >= 0x1p100 ? most : whole <= -0x1p100 ? least : Integer(whole);
  }
  if (value.isFloat || how.saturates)
    integer = integer < least ? least : integer > most ? most : integer;
  return uint64_t(integer);
}

uint64_t floatOf(const Value &value, const Conversion &how) {
  bool isWide = how.to == Type::F64;
  double number = value.isFloat ? value.number
                  : isWide      ? toDouble(value.integer, how.rounding)
                                : toOdd(value.integer);
  if (how.isInteger && value.isFloat)
    number = roundToInteger(number, how.rounding);
  if (how.isRelu && number == number && std::signbit(number))
    number = 0;
  if (how.saturates)
    number = saturated(number);
  if (isWide)
    return bitsAs<uint64_t>(number);
  const Format &format = *formatOf(how.to);
  // A TF32 number is stored like an f32 number whose low 13 bits are 0.
  if (how.to == Type::TF32) {
    double rounded = decode(encode(number, formatTF32, how.rounding, how.isFinite), formatTF32);
    return number != number ? canonicalNan
                            : encode(rounded, formatF32, Rounding::NearestEven, false);
  }
  uint32_t bits = encode(number, format, how.rounding, how.isFinite);
  return how.flushes && how.to == Type::F32 ? bitsAs<uint32_t>(flushed(bitsAs<float>(bits))) : bits;
}

uint64_t converted(uint64_t bits, const Conversion &how) {
  Value value = valueOf(bits, how.from, how.flushes);
  return isFloat(how.to) ? floatOf(value, how) : integerOf(value, how);
}

/// Sign-extends a number of a signed type to 64 bits, since the register may be wider than the
/// type.
uint64_t extended(uint64_t bits, Type type) {
  unsigned size = 8 * sizeOf(type);
  if (size == 64 || isFloat(type))
    return bits;
  return isSigned(type) ? uint64_t(int64_t(bits << (64 - size)) >> (64 - size))
                        : bits & ((uint64_t(1) << size) - 1);
}

Conversion unpack(const Instruction &i) {
  Conversion how;
  std::memcpy(&how, &i.payload, sizeof i.payload);
  how.isFinite = i.modifier & 1;
  how.isRelu = i.modifier & 2;
  how.saturates = i.modifier & 4;
  how.flushes = i.modifier & 8;
  how.isInteger = i.modifier & 16;
  return how;
}

Step convertOne(Warp &warp, const Instruction &i, LaneMask active) {
  Conversion how = unpack(i);
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (active >> lane & 1)
      writeBits(warp, i.out[0], how.toSize, lane,
                extended(converted(readBits(warp, i.in[0], how.fromSize, lane), how), how.to));
  return Step::Next;
}

/// Converts two numbers and packs the results into one register, the first into the upper half.
Step convertTwo(Warp &warp, const Instruction &i, LaneMask active) {
  Conversion how = unpack(i);
  unsigned half = 4 * sizeOf(how.to);
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (active >> lane & 1) {
      uint64_t high = converted(readBits(warp, i.in[0], 4, lane), how),
               low = converted(readBits(warp, i.in[1], 4, lane), how);
      writeBits(warp, i.out[0], how.toSize, lane, high << half | low);
    }
  return Step::Next;
}

/// Converts a pair of numbers to a pair of another type, for example f16x2 to two 8-bit floats.
Step convertPairs(Warp &warp, const Instruction &i, LaneMask active) {
  Conversion how = unpack(i);
  unsigned to = 4 * sizeOf(how.to), from = 4 * sizeOf(how.from);
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (active >> lane & 1) {
      uint64_t bits = readBits(warp, i.in[0], how.fromSize, lane), mask = (uint64_t(1) << from) - 1;
      writeBits(warp, i.out[0], how.toSize, lane,
                converted(bits >> from & mask, how) << to | converted(bits & mask, how));
    }
  return Step::Next;
}

struct Plain {
  template <typename R, typename A>
  struct To {
    static FSDPRT_INLINE R apply(A a) { return R(a); }
  };
};
template <typename R, typename A>
Handler plain() {
  return handler<Map1<Plain::To<R, A>, R, A>>();
}

template <typename F>
struct PackHalves {
  static FSDPRT_INLINE uint32_t apply(float high, float low) {
    return uint32_t(F::narrow(high)) << 16 | F::narrow(low);
  }
};
template <typename F>
struct Widen {
  static FSDPRT_INLINE float apply(uint16_t half) { return F::widen(half); }
};
template <typename F>
struct Narrow {
  static FSDPRT_INLINE uint16_t apply(float value) { return F::narrow(value); }
};

/// Returns the handler of a conversion that occurs often, and null for any other conversion.
/// Frequent conversions have no modifier except .rn, and their registers have the sizes of their
/// types.
Handler fastHandler(const Conversion &how, bool isPair) {
  if (how.toSize != sizeOf(how.to) || how.fromSize != sizeOf(how.from) ||
      how.rounding != Rounding::NearestEven)
    return nullptr;
  if (isPair)
    return how.from != Type::F32    ? nullptr
           : how.to == Type::BF16x2 ? handler<Map2<PackHalves<Brain>, uint32_t, float>>()
           : how.to == Type::F16x2  ? handler<Map2<PackHalves<Half>, uint32_t, float>>()
                                    : nullptr;
  switch (static_cast<unsigned>(how.to) << 8 | static_cast<unsigned>(how.from)) {
#define FSDPRT_PAIR(to, from, handler)                                                             \
  case static_cast<unsigned>(Type::to) << 8 | static_cast<unsigned>(Type::from):                   \
    return handler;
    FSDPRT_PAIR(U64, U32, (plain<uint64_t, uint32_t>()))
    FSDPRT_PAIR(S64, S32, (plain<int64_t, int32_t>()))
    FSDPRT_PAIR(U32, U64, (plain<uint32_t, uint64_t>()))
    FSDPRT_PAIR(S32, S64, (plain<uint32_t, uint64_t>()))
    FSDPRT_PAIR(U32, U16, (plain<uint32_t, uint16_t>()))
    FSDPRT_PAIR(S32, S16, (plain<int32_t, int16_t>()))
    FSDPRT_PAIR(U16, U32, (plain<uint16_t, uint32_t>()))
    FSDPRT_PAIR(F32, S32, (plain<float, int32_t>()))
    FSDPRT_PAIR(F32, U32, (plain<float, uint32_t>()))
    FSDPRT_PAIR(F64, S32, (plain<double, int32_t>()))
    FSDPRT_PAIR(F64, F32, (plain<double, float>()))
    FSDPRT_PAIR(F32, F16, (handler<Map1<Widen<Half>, float, uint16_t>>()))
    FSDPRT_PAIR(F32, BF16, (handler<Map1<Widen<Brain>, float, uint16_t>>()))
    FSDPRT_PAIR(F16, F32, (handler<Map1<Narrow<Half>, uint16_t, float>>()))
    FSDPRT_PAIR(BF16, F32, (handler<Map1<Narrow<Brain>, uint16_t, float>>()))
#undef FSDPRT_PAIR
  default:
    return nullptr;
  }
}
} // namespace

static void takeRounding(Decoder &d, Conversion &how) {
  int integer = d.modifiers.takeOneOf({"rni", "rzi", "rmi", "rpi"});
  int rounding = d.modifiers.takeOneOf({"rn", "rz", "rm", "rp", "rna"});
  how.isInteger = integer >= 0;
  how.rounding = static_cast<Rounding>(integer >= 0 ? integer : rounding >= 0 ? rounding : 0);
}

static bool isPairType(Type type) {
  return type == Type::F16x2 || type == Type::BF16x2 || type == Type::E4M3x2 ||
         type == Type::E5M2x2;
}

static Instruction &emitConversion(Decoder &d, const Conversion &how, Handler run, Slot out,
                                   const std::vector<Slot> &ins) {
  Instruction &i = d.emit(run, {out}, ins);
  std::memcpy(&i.payload, &how, sizeof i.payload);
  i.modifier =
      how.isFinite | how.isRelu << 1 | how.saturates << 2 | how.flushes << 3 | how.isInteger << 4;
  return i;
}

bool fsdprt::emulate::decodeConvert(Decoder &d) {
  Conversion how;
  takeRounding(d, how);
  how.flushes = d.modifiers.take("ftz");
  how.saturates = d.modifiers.take("sat");
  how.isFinite = d.modifiers.take("satfinite");
  how.isRelu = d.modifiers.take("relu");
  how.to = d.type();
  how.from = d.type();
  if (how.to == Type::Pred || how.from == Type::Pred || how.to == Type::F32x2 ||
      how.from == Type::F32x2 ||
      isPairType(how.from) != (isPairType(how.from) && isPairType(how.to)))
    d.fail("no conversion from %s to %s", nameOf(how.from), nameOf(how.to));
  bool isPair = isPairType(how.to) && !isPairType(how.from);
  if (isPair && how.from != Type::F32)
    d.fail("expected f32 as the type that becomes %s", nameOf(how.to));
  d.operandCount(2 + isPair, 2 + isPair);
  unsigned toSize, fromSize;
  Slot out = d.wideDestination(d.operand(0), how.to, toSize),
       in = d.wideSource(d.operand(1), how.from, fromSize);
  how.toSize = std::max(toSize, 2u), how.fromSize = fromSize;
  std::vector<Slot> ins{in};
  if (isPair)
    ins.push_back(d.source(2, Type::F32));
  bool isPlain = !how.flushes && !how.saturates && !how.isFinite && !how.isRelu && !how.isInteger;
  Handler run = isPlain ? fastHandler(how, isPair) : nullptr;
  emitConversion(d, how,
                 run                    ? run
                 : isPair               ? convertTwo
                 : isPairType(how.from) ? convertPairs
                                        : convertOne,
                 out, ins);
  return true;
}
