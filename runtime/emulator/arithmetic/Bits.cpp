//===- Bits.cpp - Integers as bits ------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Integer Arithmetic Instructions: popc, clz, bfind, fns, brev, bfe, bfi,
// szext, bmsk, dp4a, dp2a".
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Decoder.h"
#include "emulator/machine/Lanes.h"
#include <type_traits>

using namespace fsdprt::emulate;

namespace {
template <typename T>
FSDPRT_INLINE uint32_t leadingZeros(T a) {
  return !a ? 8 * sizeof(T) : sizeof(T) == 8 ? __builtin_clzll(a) : __builtin_clz(a);
}

struct Popc {
  template <typename T>
  static FSDPRT_INLINE uint32_t apply(T a) {
    return __builtin_popcountll(a);
  }
};
struct Clz {
  template <typename T>
  static FSDPRT_INLINE uint32_t apply(T a) {
    return leadingZeros(a);
  }
};
/// Returns the position of the highest bit that differs from the sign bit. Returns -1 if all bits
/// are equal to the sign bit. With .shiftamt, the position is counted downwards from the highest
/// bit.
template <bool isShift>
struct Bfind {
  template <typename T>
  static FSDPRT_INLINE uint32_t apply(T a) {
    using U = std::make_unsigned_t<T>;
    U bits = a < 0 ? ~U(a) : U(a);
    if (!bits)
      return ~0u;
    uint32_t zeros = leadingZeros(bits);
    return isShift ? zeros : 8 * sizeof(T) - 1 - zeros;
  }
};
struct Brev {
  template <typename T>
  static FSDPRT_INLINE T apply(T a) {
    T result = 0;
    for (unsigned bit = 0; bit < 8 * sizeof(T); ++bit)
      result |= (a >> bit & 1) << (8 * sizeof(T) - 1 - bit);
    return result;
  }
};
/// Extracts a field from `a`. The low byte of `b` is the position of the field, and the low byte of
/// `c` is the length of the field. If the type is signed, the field is extended by the highest bit
/// of the field. If the field ends beyond the highest bit of `a`, the field is extended by the sign
/// of `a`.
struct Bfe {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, uint32_t b, uint32_t c) {
    using U = std::make_unsigned_t<T>;
    constexpr unsigned bits = 8 * sizeof(T);
    unsigned position = b & 255, length = c & 255;
    if (!length)
      return 0;
    bool isNegative =
        std::is_signed_v<T> && (U(a) >> std::min(position + length - 1, bits - 1) & 1);
    U field = position < bits ? U(a) >> position : 0;
    unsigned valid = position < bits ? std::min(length, bits - position) : 0;
    if (valid < bits) {
      U mask = (U(1) << valid) - 1;
      field = isNegative ? field | ~mask : field & mask;
    }
    return field;
  }
};
template <typename T>
Step bfi(Warp &warp, const Instruction &i, LaneMask active) {
  constexpr unsigned bits = 8 * sizeof(T);
  T result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    T from = warp.at<T>(i.in[0])[lane], into = warp.at<T>(i.in[1])[lane];
    unsigned position = warp.at<uint32_t>(i.in[2])[lane] & 255,
             length = warp.at<uint32_t>(i.in[3])[lane] & 255;
    T mask = length >= bits ? ~T(0) : (T(1) << length) - 1;
    result[lane] =
        position >= bits ? into : T((into & ~(mask << position)) | (from & mask) << position);
  }
  keep(warp.at<T>(i.out[0]), result, active);
  return Step::Next;
}
/// Searches `mask` for the |offset|-th bit that is set, and returns the position of this bit. The
/// search begins at the bit `base`. The search goes upwards if `offset` is positive, and downwards
/// if `offset` is negative. Returns -1 if there is no such bit. If `offset` is 0, returns `base` if
/// the bit `base` is set.
struct Fns {
  static FSDPRT_INLINE uint32_t apply(uint32_t mask, uint32_t base, int32_t offset) {
    if (!offset)
      return mask >> (base & 31) & 1 ? base & 31 : ~0u;
    int step = offset > 0 ? 1 : -1, count = offset > 0 ? offset : -offset;
    for (int bit = base & 31; bit >= 0 && bit < 32; bit += step)
      if (mask >> bit & 1 && !--count)
        return bit;
    return ~0u;
  }
};
template <bool wraps>
struct Szext {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, uint32_t b) {
    if (wraps)
      b &= 31;
    if (b > 31)
      return a;
    if (!b)
      return 0;
    return std::is_signed_v<T> ? T(int32_t(uint32_t(a) << (32 - b)) >> (32 - b))
                               : T(uint32_t(a) << (32 - b) >> (32 - b));
  }
};
template <bool wraps>
struct Bmsk {
  static FSDPRT_INLINE uint32_t apply(uint32_t a, uint32_t b) {
    if (wraps)
      a &= 31, b &= 31;
    uint32_t ones = b > 31 ? ~0u : (1u << b) - 1;
    return a > 31 ? 0 : ones << a;
  }
};
/// Implements dp4a and dp2a. If bit 0 of Instruction::modifier is set, `a` is signed. If bit 1 is
/// set, `b` is signed. If bit 2 is set, dp2a uses the high bytes of `b`.
template <unsigned parts>
Step dotProduct(Warp &warp, const Instruction &i, LaneMask active) {
  uint32_t result[warpSize];
  auto part = [](uint32_t word, unsigned index, unsigned bits, bool isSigned) {
    uint32_t field = word >> (index * bits) << (32 - bits);
    return isSigned ? uint32_t(int32_t(field) >> (32 - bits)) : field >> (32 - bits);
  };
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    uint32_t a = warp.at<uint32_t>(i.in[0])[lane], b = warp.at<uint32_t>(i.in[1])[lane];
    uint32_t sum = warp.at<uint32_t>(i.in[2])[lane];
    for (unsigned k = 0; k < parts; ++k)
      sum += part(a, k, 32 / parts, i.modifier & 1) *
             part(b, k + (i.modifier & 4 ? 2 : 0), 8, i.modifier & 2);
    result[lane] = sum;
  }
  keep(warp.at<uint32_t>(i.out[0]), result, active);
  return Step::Next;
}

template <typename Op>
Handler countOf(Type type) {
  switch (type) {
  case Type::U64:
  case Type::B64:
    return handler<Map1<Op, uint32_t, uint64_t>>();
  case Type::S64:
    return handler<Map1<Op, uint32_t, int64_t>>();
  case Type::S32:
    return handler<Map1<Op, uint32_t, int32_t>>();
  default:
    return handler<Map1<Op, uint32_t, uint32_t>>();
  }
}

template <typename T>
Handler field() {
  return handler<Map3<Bfe, T, T, uint32_t, uint32_t>>();
}
} // namespace

static void decodeField(Decoder &d) {
  if (d.modifiers.name() == "bfi") {
    d.operandCount(5, 5);
    Type type = d.typeOneOf({Type::B32, Type::B64});
    d.emit(type == Type::B32 ? bfi<uint32_t> : bfi<uint64_t>, {d.destination(0, type)},
           {d.source(1, type), d.source(2, type), d.source(3, Type::U32), d.source(4, Type::U32)});
    return;
  }
  d.operandCount(4, 4);
  Type type = d.typeOneOf({Type::U32, Type::S32, Type::U64, Type::S64});
  Handler run = type == Type::U32   ? field<uint32_t>()
                : type == Type::S32 ? field<int32_t>()
                : type == Type::U64 ? field<uint64_t>()
                                    : field<int64_t>();
  d.emit(run, {d.destination(0, type)},
         {d.source(1, type), d.source(2, Type::U32), d.source(3, Type::U32)});
}

static void decodeCount(Decoder &d) {
  d.operandCount(2, 2);
  std::string_view name = d.modifiers.name();
  bool isShift = d.modifiers.take("shiftamt");
  Type type = name == "bfind" ? d.typeOneOf({Type::U32, Type::S32, Type::U64, Type::S64})
                              : d.typeOneOf({Type::B32, Type::B64});
  Handler run = name == "popc"  ? countOf<Popc>(type)
                : name == "clz" ? countOf<Clz>(type)
                : isShift       ? countOf<Bfind<true>>(type)
                                : countOf<Bfind<false>>(type);
  d.emit(run, {d.destination(0, Type::U32)}, {d.source(1, type)});
}

static void decodeDotProduct(Decoder &d) {
  bool isTwo = d.modifiers.name() == "dp2a", isHigh = false;
  if (isTwo && !(isHigh = d.modifiers.take("hi")) && !d.modifiers.take("lo"))
    d.fail("expected .lo or .hi");
  d.operandCount(4, 4);
  Type a = d.typeOneOf({Type::U32, Type::S32}), b = d.typeOneOf({Type::U32, Type::S32});
  Instruction &i = d.emit(isTwo ? dotProduct<2> : dotProduct<4>, {d.destination(0, Type::B32)},
                          {d.source(1, Type::B32), d.source(2, Type::B32), d.source(3, Type::B32)});
  i.modifier = (a == Type::S32) | (b == Type::S32) << 1 | isHigh << 2;
}

bool fsdprt::emulate::decodeBits(Decoder &d) {
  std::string_view name = d.modifiers.name();
  if (name == "popc" || name == "clz" || name == "bfind") {
    decodeCount(d);
  } else if (name == "bfe" || name == "bfi") {
    decodeField(d);
  } else if (name == "dp4a" || name == "dp2a") {
    decodeDotProduct(d);
  } else if (name == "brev") {
    d.operandCount(2, 2);
    Type type = d.typeOneOf({Type::B32, Type::B64});
    d.emit(type == Type::B32 ? unary<Brev, uint32_t>() : unary<Brev, uint64_t>(),
           {d.destination(0, type)}, {d.source(1, type)});
  } else if (name == "fns") {
    d.operandCount(4, 4);
    d.typeOneOf({Type::B32});
    d.emit(handler<Map3<Fns, uint32_t, uint32_t, uint32_t, int32_t>>(),
           {d.destination(0, Type::B32)},
           {d.source(1, Type::B32), d.source(2, Type::B32), d.source(3, Type::S32)});
  } else {
    bool wraps = d.modifiers.takeOneOf({"clamp", "wrap"}) == 1;
    d.operandCount(3, 3);
    Type type = name == "bmsk" ? d.typeOneOf({Type::B32}) : d.typeOneOf({Type::U32, Type::S32});
    Handler run = name == "bmsk"
                      ? (wraps ? binary<Bmsk<true>, uint32_t>() : binary<Bmsk<false>, uint32_t>())
                  : type == Type::U32
                      ? (wraps ? binary<Szext<true>, uint32_t>() : binary<Szext<false>, uint32_t>())
                      : (wraps ? handler<Map2<Szext<true>, int32_t, int32_t, uint32_t>>()
                               : handler<Map2<Szext<false>, int32_t, int32_t, uint32_t>>());
    d.emit(run, {d.destination(0, type)}, {d.source(1, type), d.source(2, Type::U32)});
  }
  return true;
}
