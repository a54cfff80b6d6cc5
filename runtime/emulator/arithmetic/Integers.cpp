//===- Integers.cpp - Integer arithmetic ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Integer Arithmetic Instructions", which has a section for each instruction.
// Integer results wrap around, unless the instruction has the modifier .sat. A division by zero,
// which PTX ISA leaves undefined, gives a number whose bits are all ones. Floats.cpp and Halves.cpp
// decode the float forms of add, sub, mul, mad, div, abs, neg, min and max.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Decoder.h"
#include "emulator/machine/Lanes.h"
#include <limits>
#include <type_traits>

using namespace fsdprt::emulate;

namespace {
template <typename T>
using Unsigned = std::make_unsigned_t<T>;
/// The integer type that is twice as wide as T and has the same signedness.
template <typename T>
struct WiderOf;
template <>
struct WiderOf<uint16_t> {
  using type = uint32_t;
};
template <>
struct WiderOf<int16_t> {
  using type = int32_t;
};
template <>
struct WiderOf<uint32_t> {
  using type = uint64_t;
};
template <>
struct WiderOf<int32_t> {
  using type = int64_t;
};
__extension__ typedef __int128 Wide128;
__extension__ typedef unsigned __int128 UnsignedWide128;
template <>
struct WiderOf<uint64_t> {
  using type = UnsignedWide128;
};
template <>
struct WiderOf<int64_t> {
  using type = Wide128;
};
template <typename T>
using Wider = typename WiderOf<T>::type;

// Arithmetic on 16-bit numbers uses uint32_t, since a product of 16-bit numbers can overflow an
// int, to which C++ promotes these numbers.
template <typename T>
using Working = std::conditional_t<sizeof(T) == 2, uint32_t, Unsigned<T>>;

struct Add {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return Unsigned<T>(a) + Unsigned<T>(b);
  }
};
struct Sub {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return Unsigned<T>(a) - Unsigned<T>(b);
  }
};
struct MulLow {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return Working<T>(a) * Working<T>(b);
  }
};
struct MulHigh {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return (Wider<T>(a) * b) >> (8 * sizeof(T));
  }
};
struct MulWide {
  template <typename T>
  static FSDPRT_INLINE Wider<T> apply(T a, T b) {
    return Wider<T>(a) * b;
  }
};
struct MadLow {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b, T c) {
    return Working<T>(a) * Working<T>(b) + Working<T>(c);
  }
};
struct MadHigh {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b, T c) {
    return Add::apply<T>(MulHigh::apply(a, b), c);
  }
};
struct MadWide {
  template <typename T>
  static FSDPRT_INLINE Wider<T> apply(T a, T b, Wider<T> c) {
    return Add::apply<Wider<T>>(Wider<T>(a) * b, c);
  }
};
/// Returns the low 24 bits of `a` as a number. The result of mul24.lo is bits 31 to 0 of the
/// product of two such numbers, and the result of mul24.hi is bits 47 to 16.
template <typename T>
FSDPRT_INLINE int64_t low24(T a) {
  return std::is_signed_v<T> ? int64_t(int32_t(uint32_t(a) << 8) >> 8) : int64_t(a & 0xffffff);
}
struct Mul24Low {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return low24(a) * low24(b);
  }
};
struct Mul24High {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return (low24(a) * low24(b)) >> 16;
  }
};
struct Mad24Low {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b, T c) {
    return Add::apply<T>(Mul24Low::apply(a, b), c);
  }
};
struct Mad24High {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b, T c) {
    return Add::apply<T>(Mul24High::apply(a, b), c);
  }
};
struct AddSaturated {
  static FSDPRT_INLINE int32_t apply(int32_t a, int32_t b) { return clamp(int64_t(a) + b); }
  static FSDPRT_INLINE int32_t clamp(int64_t v) {
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
  }
};
struct SubSaturated {
  static FSDPRT_INLINE int32_t apply(int32_t a, int32_t b) {
    return AddSaturated::clamp(int64_t(a) - b);
  }
};
struct MadHighSaturated {
  static FSDPRT_INLINE int32_t apply(int32_t a, int32_t b, int32_t c) {
    return AddSaturated::clamp(int64_t(MulHigh::apply(a, b)) + c);
  }
};
struct Sad {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b, T c) {
    return Unsigned<T>(c) +
           (a < b ? Unsigned<T>(b) - Unsigned<T>(a) : Unsigned<T>(a) - Unsigned<T>(b));
  }
};
struct Div {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    if (!b)
      return ~T(0);
    return std::is_signed_v<T> && b == T(-1) ? T(-Unsigned<T>(a)) : T(a / b);
  }
};
struct Rem {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    if (!b)
      return a;
    return std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
  }
};
struct Abs {
  template <typename T>
  static FSDPRT_INLINE T apply(T a) {
    return a < 0 ? T(-Unsigned<T>(a)) : a;
  }
};
struct Neg {
  template <typename T>
  static FSDPRT_INLINE T apply(T a) {
    return -Unsigned<T>(a);
  }
};
struct Min {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <typename T>
  static FSDPRT_INLINE T apply(T a, T b) {
    return a < b ? b : a;
  }
};
/// Implements the modifier .relu of min and max, which replaces negative results by 0.
template <typename Op>
struct Relu {
  static FSDPRT_INLINE int32_t apply(int32_t a, int32_t b) {
    return Max::apply(Op::apply(a, b), 0);
  }
};
/// Applies an operation to both 16-bit numbers that a 32-bit register contains.
template <typename Op, typename T>
struct Pairs {
  static FSDPRT_INLINE uint32_t apply(uint32_t a, uint32_t b) {
    return uint16_t(Op::template apply<T>(a, b)) |
           uint32_t(uint16_t(Op::template apply<T>(a >> 16, b >> 16))) << 16;
  }
};

template <typename Op>
Handler unaryOf(Type type) {
  switch (type) {
  case Type::S16:
    return unary<Op, int16_t>();
  case Type::S32:
    return unary<Op, int32_t>();
  default:
    return unary<Op, int64_t>();
  }
}

template <typename Op>
Handler binaryOf(Type type) {
  switch (type) {
  case Type::U16:
    return binary<Op, uint16_t>();
  case Type::S16:
    return binary<Op, int16_t>();
  case Type::U32:
    return binary<Op, uint32_t>();
  case Type::S32:
    return binary<Op, int32_t>();
  case Type::U64:
    return binary<Op, uint64_t>();
  default:
    return binary<Op, int64_t>();
  }
}

template <typename Op>
Handler ternaryOf(Type type) {
  switch (type) {
  case Type::U16:
    return ternary<Op, uint16_t>();
  case Type::S16:
    return ternary<Op, int16_t>();
  case Type::U32:
    return ternary<Op, uint32_t>();
  case Type::S32:
    return ternary<Op, int32_t>();
  case Type::U64:
    return ternary<Op, uint64_t>();
  default:
    return ternary<Op, int64_t>();
  }
}

template <typename T>
Handler wideProduct() {
  return handler<Map2<MulWide, Wider<T>, T>>();
}
template <typename T>
Handler wideSum() {
  return handler<Map3<MadWide, Wider<T>, T, T, Wider<T>>>();
}

Type widerType(Type type) {
  switch (type) {
  case Type::U16:
    return Type::U32;
  case Type::S16:
    return Type::S32;
  case Type::U32:
    return Type::U64;
  default:
    return Type::S64;
  }
}
} // namespace

static const std::initializer_list<Type> integers = {Type::U16, Type::S16, Type::U32,
                                                     Type::S32, Type::U64, Type::S64};

static void decodeWide(Decoder &d, bool adds) {
  Type type = d.typeOneOf({Type::U16, Type::S16, Type::U32, Type::S32});
  Handler product[] = {wideProduct<uint16_t>(), wideProduct<int16_t>(), wideProduct<uint32_t>(),
                       wideProduct<int32_t>()};
  Handler sum[] = {wideSum<uint16_t>(), wideSum<int16_t>(), wideSum<uint32_t>(),
                   wideSum<int32_t>()};
  int which = type == Type::U16 ? 0 : type == Type::S16 ? 1 : type == Type::U32 ? 2 : 3;
  std::vector<Slot> ins{d.source(1, type), d.source(2, type)};
  if (adds)
    ins.push_back(d.source(3, widerType(type)));
  d.emit(adds ? sum[which] : product[which], {d.destination(0, widerType(type))}, ins);
}

static void decodeProduct(Decoder &d, bool adds) {
  d.operandCount(3 + adds, 3 + adds);
  int part = d.modifiers.takeOneOf({"lo", "hi", "wide"});
  if (part == 2)
    return decodeWide(d, adds);
  bool isSaturated = d.modifiers.take("sat");
  Type type = isSaturated ? d.typeOneOf({Type::S32}) : d.typeOneOf(integers);
  if (part < 0)
    d.fail("expected .lo, .hi or .wide in '%s'", std::string(d.statement->opcode).c_str());
  Handler run = part == 0 ? (adds ? ternaryOf<MadLow>(type) : binaryOf<MulLow>(type))
                          : (adds ? ternaryOf<MadHigh>(type) : binaryOf<MulHigh>(type));
  if (isSaturated) {
    if (!adds || part != 1)
      d.fail("only mad.hi.sat.s32 saturates");
    run = ternary<MadHighSaturated, int32_t>();
  }
  std::vector<Slot> ins{d.source(1, type), d.source(2, type)};
  if (adds)
    ins.push_back(d.source(3, type));
  d.emit(run, {d.destination(0, type)}, ins);
}

static void decodeProduct24(Decoder &d, bool adds) {
  d.operandCount(3 + adds, 3 + adds);
  bool isHigh = d.modifiers.take("hi");
  if (!isHigh && !d.modifiers.take("lo"))
    d.fail("expected .lo or .hi");
  Type type = d.typeOneOf({Type::U32, Type::S32});
  std::vector<Slot> ins{d.source(1, type), d.source(2, type)};
  if (adds)
    ins.push_back(d.source(3, type));
  Handler run = adds ? (isHigh ? ternaryOf<Mad24High>(type) : ternaryOf<Mad24Low>(type))
                     : (isHigh ? binaryOf<Mul24High>(type) : binaryOf<Mul24Low>(type));
  d.emit(run, {d.destination(0, type)}, ins);
}

static void decodeSum(Decoder &d) {
  bool isSub = d.modifiers.name() == "sub";
  d.operandCount(3, 3);
  if (d.modifiers.take("sat")) {
    Type type = d.typeOneOf({Type::S32});
    d.emit(isSub ? binary<SubSaturated, int32_t>() : binary<AddSaturated, int32_t>(),
           {d.destination(0, type)}, {d.source(1, type), d.source(2, type)});
    return;
  }
  bool isPair = d.modifiers.take("u16x2"), isSignedPair = d.modifiers.take("s16x2");
  if (isPair || isSignedPair) {
    d.emit(isSub ? binary<Pairs<Sub, uint16_t>, uint32_t>()
                 : binary<Pairs<Add, uint16_t>, uint32_t>(),
           {d.destination(0, Type::B32)}, {d.source(1, Type::B32), d.source(2, Type::B32)});
    return;
  }
  Type type = d.typeOneOf(integers);
  d.emit(isSub ? binaryOf<Sub>(type) : binaryOf<Add>(type), {d.destination(0, type)},
         {d.source(1, type), d.source(2, type)});
}

static void decodeExtreme(Decoder &d) {
  bool isMin = d.modifiers.name() == "min";
  d.operandCount(3, 3);
  bool isPair = d.modifiers.take("u16x2"), isSignedPair = d.modifiers.take("s16x2"),
       isRelu = d.modifiers.take("relu");
  Type type = isPair || isSignedPair ? Type::B32
              : isRelu               ? d.typeOneOf({Type::S32})
                                     : d.typeOneOf(integers);
  Handler run = isMin ? binaryOf<Min>(type) : binaryOf<Max>(type);
  if (isPair)
    run =
        isMin ? binary<Pairs<Min, uint16_t>, uint32_t>() : binary<Pairs<Max, uint16_t>, uint32_t>();
  else if (isSignedPair && !isRelu)
    run = isMin ? binary<Pairs<Min, int16_t>, uint32_t>() : binary<Pairs<Max, int16_t>, uint32_t>();
  else if (isSignedPair)
    d.fail(".relu of packed integers is not supported");
  else if (isRelu)
    run = isMin ? binary<Relu<Min>, int32_t>() : binary<Relu<Max>, int32_t>();
  d.emit(run, {d.destination(0, type)}, {d.source(1, type), d.source(2, type)});
}

static void decodeUnary(Decoder &d) {
  d.operandCount(2, 2);
  Type type = d.typeOneOf({Type::S16, Type::S32, Type::S64});
  d.emit(d.modifiers.name() == "abs" ? unaryOf<Abs>(type) : unaryOf<Neg>(type),
         {d.destination(0, type)}, {d.source(1, type)});
}

static void decodeQuotient(Decoder &d) {
  d.operandCount(3, 3);
  Type type = d.typeOneOf(integers);
  d.emit(d.modifiers.name() == "div" ? binaryOf<Div>(type) : binaryOf<Rem>(type),
         {d.destination(0, type)}, {d.source(1, type), d.source(2, type)});
}

static bool isFloating(const Modifiers &modifiers) {
  for (std::string_view part : modifiers.left())
    if (auto type = typeNamed(part); type && isFloat(*type))
      return true;
  return false;
}

bool fsdprt::emulate::decodeInteger(Decoder &d) {
  std::string_view name = d.modifiers.name();
  if (isFloating(d.modifiers))
    return decodeFloat(d);
  if (d.modifiers.has("cc"))
    return decodeCarry(d);
  if (name == "add" || name == "sub")
    decodeSum(d);
  else if (name == "mul" || name == "mad")
    decodeProduct(d, name == "mad");
  else if (name == "mul24" || name == "mad24")
    decodeProduct24(d, name == "mad24");
  else if (name == "min" || name == "max")
    decodeExtreme(d);
  else if (name == "abs" || name == "neg")
    decodeUnary(d);
  else if (name == "div" || name == "rem")
    decodeQuotient(d);
  else if (name == "sad") {
    d.operandCount(4, 4);
    Type type = d.typeOneOf(integers);
    d.emit(ternaryOf<Sad>(type), {d.destination(0, type)},
           {d.source(1, type), d.source(2, type), d.source(3, type)});
  } else
    return false;
  return true;
}
