//===- Compare.cpp - Comparison and selection -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Comparison and Selection Instructions: set, setp, selp, slct" and their half
// precision forms. A comparison has one of four outcomes: less, equal, greater, or unordered (if an
// operand is NaN). A comparison operator is represented as the set of the outcomes for which it is
// true.
//
//===----------------------------------------------------------------------===//

#include "emulator/arithmetic/Formats.h"
#include "emulator/machine/Decoder.h"

using namespace fsdprt::emulate;

namespace {
struct Cases {
  LaneMask less = 0, equal = 0, unordered = 0;
};
/// Bits of Instruction::modifier. The bits If... name the outcomes for which the comparison is
/// true.
enum : uint8_t { IfLess = 1, IfEqual = 2, IfGreater = 4, IfUnordered = 8, Flushes = 16 };

LaneMask holds(const Cases &cases, uint8_t which) {
  LaneMask greater = ~(cases.less | cases.equal | cases.unordered);
  return (which & IfLess ? cases.less : 0) | (which & IfEqual ? cases.equal : 0) |
         (which & IfGreater ? greater : 0) | (which & IfUnordered ? cases.unordered : 0);
}

/// Converts an operand of a lane to a type whose values the host can compare.
template <typename T>
struct Number {
  using Stored = T;
  static FSDPRT_INLINE T of(T value, bool) { return value; }
};
template <>
struct Number<float> {
  using Stored = float;
  static FSDPRT_INLINE float of(float value, bool flushes) {
    return flushes ? flushed(value) : value;
  }
};
template <typename F, unsigned shift, typename T>
struct PackedNumber {
  using Stored = T;
  static FSDPRT_INLINE float of(T value, bool) { return F::widen(value >> shift); }
};

template <typename N>
FSDPRT_INLINE Cases compare(Warp &warp, const Instruction &i) {
  auto a = warp.at<typename N::Stored>(i.in[0]), b = warp.at<typename N::Stored>(i.in[1]);
  bool flushes = i.modifier & Flushes;
  Cases cases;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    auto x = N::of(a[lane], flushes), y = N::of(b[lane], flushes);
    cases.less |= LaneMask(x < y) << lane;
    cases.equal |= LaneMask(x == y) << lane;
    cases.unordered |= LaneMask(x != x || y != y) << lane;
  }
  return cases;
}

/// Combines the result of the comparison with a predicate: the last operand of the instruction.
/// `modifier2` selects the operation: 0 for none, 1 for "and", 2 for "or", 3 for "xor".
FSDPRT_INLINE LaneMask combine(Warp &warp, const Instruction &i, LaneMask result) {
  if (!i.modifier2)
    return result;
  LaneMask with = warp.predicate(i.in[2]);
  return i.modifier2 == 1 ? result & with : i.modifier2 == 2 ? result | with : result ^ with;
}

template <typename N, typename N2 = N>
struct Setp {
  static FSDPRT_INLINE Step run(Warp &warp, const Instruction &i, LaneMask active) {
    LaneMask result = holds(compare<N>(warp, i), i.modifier);
    keepBits(warp.predicate(i.out[0]), combine(warp, i, result), active);
    if (i.outCount > 1) {
      bool isPacked = !std::is_same_v<N, N2>;
      LaneMask other = isPacked ? holds(compare<N2>(warp, i), i.modifier) : ~result;
      keepBits(warp.predicate(i.out[1]), combine(warp, i, other), active);
    }
    return Step::Next;
  }
};

/// Writes `payload` (all ones or 1.0) to lanes whose comparison is true, and 0 to other lanes.
template <typename N>
struct Set {
  static FSDPRT_INLINE Step run(Warp &warp, const Instruction &i, LaneMask active) {
    LaneMask result = combine(warp, i, holds(compare<N>(warp, i), i.modifier));
    for (unsigned lane = 0; lane < warpSize; ++lane)
      if (active >> lane & 1)
        warp.at<uint32_t>(i.out[0])[lane] = result >> lane & 1 ? uint32_t(i.payload) : 0;
    return Step::Next;
  }
};

template <typename T>
struct Selp {
  static FSDPRT_INLINE Step run(Warp &warp, const Instruction &i, LaneMask active) {
    LaneMask first = warp.predicate(i.in[2]);
    T result[warpSize];
    const T *a = warp.at<T>(i.in[0]), *b = warp.at<T>(i.in[1]);
    for (unsigned lane = 0; lane < warpSize; ++lane)
      result[lane] = first >> lane & 1 ? a[lane] : b[lane];
    keep(warp.at<T>(i.out[0]), result, active);
    return Step::Next;
  }
};

struct Slct {
  template <typename T, typename C>
  static FSDPRT_INLINE T apply(T a, T b, C c) {
    return c >= 0 ? a : b;
  }
};

template <template <typename...> class Op>
Handler handlerOf(Type type) {
  switch (type) {
  case Type::B16:
  case Type::U16:
    return handler<Op<Number<uint16_t>>>();
  case Type::S16:
    return handler<Op<Number<int16_t>>>();
  case Type::B32:
  case Type::U32:
    return handler<Op<Number<uint32_t>>>();
  case Type::S32:
    return handler<Op<Number<int32_t>>>();
  case Type::B64:
  case Type::U64:
    return handler<Op<Number<uint64_t>>>();
  case Type::S64:
    return handler<Op<Number<int64_t>>>();
  case Type::F32:
    return handler<Op<Number<float>>>();
  case Type::F64:
    return handler<Op<Number<double>>>();
  case Type::F16:
    return handler<Op<PackedNumber<Half, 0, uint16_t>>>();
  case Type::BF16:
    return handler<Op<PackedNumber<Brain, 0, uint16_t>>>();
  default:
    return nullptr;
  }
}

template <typename C>
Handler slctOf(unsigned size) {
  return size == 2   ? handler<Map3<Slct, uint16_t, uint16_t, uint16_t, C>>()
         : size == 4 ? handler<Map3<Slct, uint32_t, uint32_t, uint32_t, C>>()
                     : handler<Map3<Slct, uint64_t, uint64_t, uint64_t, C>>();
}
} // namespace

/// Parses a comparison. The operators lo, ls, hi and hs compare their operands as unsigned numbers.
static uint8_t takeComparison(Decoder &d) {
  static const std::pair<const char *, uint8_t> names[] = {
      {"eq", IfEqual},
      {"ne", IfLess | IfGreater},
      {"lt", IfLess},
      {"le", IfLess | IfEqual},
      {"gt", IfGreater},
      {"ge", IfGreater | IfEqual},
      {"lo", IfLess},
      {"ls", IfLess | IfEqual},
      {"hi", IfGreater},
      {"hs", IfGreater | IfEqual},
      {"equ", IfEqual | IfUnordered},
      {"neu", IfLess | IfGreater | IfUnordered},
      {"ltu", IfLess | IfUnordered},
      {"leu", IfLess | IfEqual | IfUnordered},
      {"gtu", IfGreater | IfUnordered},
      {"geu", IfGreater | IfEqual | IfUnordered},
      {"num", IfLess | IfEqual | IfGreater},
      {"nan", IfUnordered},
  };
  for (auto [name, cases] : names)
    if (d.modifiers.take(name))
      return cases;
  d.fail("expected a comparison such as .eq in '%s'", std::string(d.statement->opcode).c_str());
}

static void decodeComparison(Decoder &d) {
  bool isSet = d.modifiers.name() == "set";
  uint8_t cases = takeComparison(d);
  int combination = d.modifiers.takeOneOf({"and", "or", "xor"}) + 1;
  bool flushes = d.modifiers.take("ftz");
  d.operandCount(3 + (combination > 0), 3 + (combination > 0));
  Type result = isSet ? d.typeOneOf({Type::U32, Type::S32, Type::F32}) : Type::Pred;
  Type type = d.type();
  Handler run = isSet ? handlerOf<Set>(type) : handlerOf<Setp>(type);
  if (!isSet && type == Type::F16x2)
    run = handler<Setp<PackedNumber<Half, 0, uint32_t>, PackedNumber<Half, 16, uint32_t>>>();
  else if (!isSet && type == Type::BF16x2)
    run = handler<Setp<PackedNumber<Brain, 0, uint32_t>, PackedNumber<Brain, 16, uint32_t>>>();
  if (!run)
    d.fail("type %s is not supported by '%s'", nameOf(type),
           std::string(d.modifiers.name()).c_str());
  std::vector<Slot> outs, ins{d.source(1, type), d.source(2, type)};
  if (combination)
    ins.push_back(d.predicate(d.operand(3)));
  const Operand &to = d.operand(0);
  if (to.kind == OperandKind::Pair)
    outs = {d.destination(to.elements[0], Type::Pred), d.destination(to.elements[1], Type::Pred)};
  else
    outs = {d.destination(to, result)};
  Instruction &i = d.emit(run, outs, ins);
  i.modifier = cases | (flushes ? Flushes : 0);
  i.modifier2 = combination;
  i.payload = result == Type::F32 ? 0x3f800000 : ~0u;
}

bool fsdprt::emulate::decodeCompare(Decoder &d) {
  std::string_view name = d.modifiers.name();
  if (name == "set" || name == "setp") {
    decodeComparison(d);
    return true;
  }
  bool flushes = d.modifiers.take("ftz");
  d.operandCount(4, 4);
  Type type = d.typeOneOf({Type::B16, Type::B32, Type::B64, Type::U16, Type::U32, Type::U64,
                           Type::S16, Type::S32, Type::S64, Type::F32, Type::F64});
  if (name == "selp") {
    Handler run = sizeOf(type) == 2   ? handler<Selp<uint16_t>>()
                  : sizeOf(type) == 4 ? handler<Selp<uint32_t>>()
                                      : handler<Selp<uint64_t>>();
    d.emit(run, {d.destination(0, type)},
           {d.source(1, type), d.source(2, type), d.predicate(d.operand(3))});
    return true;
  }
  Type by = d.typeOneOf({Type::S32, Type::F32});
  // .ftz has no effect here, because flushing does not change the result of a comparison with 0.
  (void)flushes;
  d.emit(by == Type::S32 ? slctOf<int32_t>(sizeOf(type)) : slctOf<float>(sizeOf(type)),
         {d.destination(0, type)}, {d.source(1, type), d.source(2, type), d.source(3, by)});
  return true;
}
