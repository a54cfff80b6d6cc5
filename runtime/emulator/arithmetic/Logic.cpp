//===- Logic.cpp - Logic and shifts -----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Logic and Shift Instructions: and, or, xor, not, cnot, lop3, shf, shl, shr"
// and "Data Movement and Conversion Instructions: prmt".
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Decoder.h"
#include "emulator/machine/Lanes.h"
#include <type_traits>

using namespace fsdprt::emulate;

namespace {
struct And {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <typename T>
  static FSDPRT_INLINE T apply(T a) {
    return ~a;
  }
};
struct Cnot {
  template <typename T>
  static FSDPRT_INLINE T apply(T a) {
    return !a;
  }
};
/// Shifts to the left. The shift amount is unsigned. An amount larger than the number of bits has
/// the same effect as an amount that is equal to the number of bits.
struct Shl {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, uint32_t b) {
    return b >= 8 * sizeof(T) ? 0 : T(a << b);
  }
};
struct Shr {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, uint32_t b) {
    constexpr uint32_t last = 8 * sizeof(T) - 1;
    if (b > last)
      return std::is_signed_v<T> ? T(a >> last) : 0;
    return a >> b;
  }
};
/// Shifts the 64-bit number whose high word is `b` and whose low word is `a`. Returns the high word
/// of a left shift, or the low word of a right shift.
template <bool isLeft, bool wraps>
struct Shf {
  static FSDPRT_INLINE uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t n = wraps ? c & 31 : c > 32 ? 32 : c;
    uint64_t both = uint64_t(b) << 32 | a;
    return isLeft ? uint32_t((both << n) >> 32) : uint32_t(both >> n);
  }
};

/// Applies lop3 bitwise. `modifier` is a table of 8 bits: bit number (a << 2 | b << 1 | c) of the
/// table is the result for the bits a, b and c.
Step lop3(Warp &warp, const Instruction &i, LaneMask active) {
  uint32_t result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    uint32_t a = warp.at<uint32_t>(i.in[0])[lane], b = warp.at<uint32_t>(i.in[1])[lane],
             c = warp.at<uint32_t>(i.in[2])[lane];
    uint32_t value = 0;
    for (unsigned k = 0; k < 8; ++k)
      if (i.modifier >> k & 1)
        value |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    result[lane] = value;
  }
  keep(warp.at<uint32_t>(i.out[0]), result, active);
  return Step::Next;
}

/// Selects each byte of the result from the 8 bytes `bytes`, whose high word is the operand b and
/// whose low word is the operand a. For each byte of the result there is a 4-bit selector, whose
/// low three bits are the index of the selected byte. If bit 3 of the selector is set, all bits of
/// the byte of the result are copies of the sign bit of the selected byte.
uint32_t permute(uint64_t bytes, uint32_t selectors) {
  uint32_t result = 0;
  for (unsigned k = 0; k < 4; ++k) {
    uint32_t selector = selectors >> (4 * k) & 15;
    uint8_t byte = bytes >> (8 * (selector & 7));
    if (selector & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= uint32_t(byte) << (8 * k);
  }
  return result;
}

/// Returns the selectors of a prmt mode. They depend on the low two bits of `c`. If the instruction
/// has no mode (0), `c` itself contains the selectors.
uint32_t modeSelectors(unsigned mode, uint32_t c) {
  static const uint16_t table[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543}, // f4e
      {0x5670, 0x6701, 0x7012, 0x0123}, // b4e
      {0x0000, 0x1111, 0x2222, 0x3333}, // rc8
      {0x3210, 0x3211, 0x3222, 0x3333}, // ecl
      {0x0000, 0x1110, 0x2210, 0x3210}, // ecr
      {0x1010, 0x3232, 0x1010, 0x3232}, // rc16
  };
  return mode ? table[mode - 1][c & 3] : c;
}

Step prmt(Warp &warp, const Instruction &i, LaneMask active) {
  uint32_t result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    uint64_t bytes =
        uint64_t(warp.at<uint32_t>(i.in[1])[lane]) << 32 | warp.at<uint32_t>(i.in[0])[lane];
    result[lane] = permute(bytes, modeSelectors(i.modifier, warp.at<uint32_t>(i.in[2])[lane]));
  }
  keep(warp.at<uint32_t>(i.out[0]), result, active);
  return Step::Next;
}

template <typename Op>
struct Predicates {
  static FSDPRT_INLINE Step run(Warp &warp, const Instruction &i, LaneMask active) {
    LaneMask a = warp.predicate(i.in[0]), b = warp.predicate(i.in[i.inCount - 1]);
    keepBits(warp.predicate(i.out[0]), Op::apply(a, b), active);
    return Step::Next;
  }
};
struct NotFirst {
  static FSDPRT_INLINE LaneMask apply(LaneMask a, LaneMask) { return ~a; }
};

template <typename Op>
Handler binaryOf(Type type) {
  switch (type) {
  case Type::Pred:
    return handler<Predicates<Op>>();
  case Type::B16:
    return binary<Op, uint16_t>();
  case Type::B32:
    return binary<Op, uint32_t>();
  default:
    return binary<Op, uint64_t>();
  }
}

template <typename Op>
Handler unaryOf(Type type) {
  switch (type) {
  case Type::B16:
    return unary<Op, uint16_t>();
  case Type::B32:
    return unary<Op, uint32_t>();
  default:
    return unary<Op, uint64_t>();
  }
}

template <typename Op, typename T>
Handler shiftOf() {
  return handler<Map2<Op, T, T, uint32_t>>();
}

Handler shift(bool isLeft, Type type) {
  switch (type) {
  case Type::B16:
  case Type::U16:
    return isLeft ? shiftOf<Shl, uint16_t>() : shiftOf<Shr, uint16_t>();
  case Type::B32:
  case Type::U32:
    return isLeft ? shiftOf<Shl, uint32_t>() : shiftOf<Shr, uint32_t>();
  case Type::B64:
  case Type::U64:
    return isLeft ? shiftOf<Shl, uint64_t>() : shiftOf<Shr, uint64_t>();
  case Type::S16:
    return shiftOf<Shr, int16_t>();
  case Type::S32:
    return shiftOf<Shr, int32_t>();
  default:
    return shiftOf<Shr, int64_t>();
  }
}
} // namespace

static void decodeShift(Decoder &d, bool isLeft) {
  d.operandCount(3, 3);
  Type type = isLeft ? d.typeOneOf({Type::B16, Type::B32, Type::B64})
                     : d.typeOneOf({Type::B16, Type::B32, Type::B64, Type::U16, Type::U32,
                                    Type::U64, Type::S16, Type::S32, Type::S64});
  d.emit(shift(isLeft, type), {d.destination(0, type)},
         {d.source(1, type), d.source(2, Type::U32)});
}

static void decodeFunnel(Decoder &d) {
  int direction = d.modifiers.takeOneOf({"l", "r"}),
      mode = d.modifiers.takeOneOf({"clamp", "wrap"});
  if (direction < 0 || mode < 0)
    d.fail("expected .l or .r, and .clamp or .wrap");
  d.typeOneOf({Type::B32});
  d.operandCount(4, 4);
  Handler run =
      direction == 0
          ? (mode ? ternary<Shf<true, true>, uint32_t>() : ternary<Shf<true, false>, uint32_t>())
          : (mode ? ternary<Shf<false, true>, uint32_t>() : ternary<Shf<false, false>, uint32_t>());
  d.emit(run, {d.destination(0, Type::B32)},
         {d.source(1, Type::B32), d.source(2, Type::B32), d.source(3, Type::B32)});
}

static void decodeTable(Decoder &d) {
  bool isPermute = d.modifiers.name() == "prmt";
  d.typeOneOf({Type::B32});
  d.operandCount(isPermute ? 4 : 5, isPermute ? 4 : 5);
  int mode = isPermute ? d.modifiers.takeOneOf({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}) + 1 : 0;
  uint64_t table = isPermute ? mode : d.constant(d.operand(4), "a table of 8 bits");
  if (table > 255)
    d.fail("expected a table of 8 bits");
  d.emit(isPermute ? prmt : lop3, {d.destination(0, Type::B32)},
         {d.source(1, Type::B32), d.source(2, Type::B32), d.source(3, Type::B32)})
      .modifier = table;
}

bool fsdprt::emulate::decodeLogic(Decoder &d) {
  std::string_view name = d.modifiers.name();
  if (name == "shl" || name == "shr") {
    decodeShift(d, name == "shl");
  } else if (name == "shf") {
    decodeFunnel(d);
  } else if (name == "lop3" || name == "prmt") {
    decodeTable(d);
  } else if (name == "not" || name == "cnot") {
    d.operandCount(2, 2);
    Type type = d.typeOneOf({Type::Pred, Type::B16, Type::B32, Type::B64});
    if (type == Type::Pred && name == "cnot")
      d.fail("cnot has no .pred");
    Handler run = type == Type::Pred ? handler<Predicates<NotFirst>>()
                  : name == "not"    ? unaryOf<Not>(type)
                                     : unaryOf<Cnot>(type);
    d.emit(run, {d.destination(0, type)}, {d.source(1, type)});
  } else {
    d.operandCount(3, 3);
    Type type = d.typeOneOf({Type::Pred, Type::B16, Type::B32, Type::B64});
    Handler run = name == "and"  ? binaryOf<And>(type)
                  : name == "or" ? binaryOf<Or>(type)
                                 : binaryOf<Xor>(type);
    d.emit(run, {d.destination(0, type)}, {d.source(1, type), d.source(2, type)});
  }
  return true;
}
