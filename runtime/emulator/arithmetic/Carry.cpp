//===- Carry.cpp - Integer arithmetic with a carry --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Extended-Precision Integer Arithmetic Instructions: add.cc, addc, sub.cc,
// subc, mad.cc, madc". The carry flag of the condition code register is stored as a predicate
// register. A subtraction sets the flag to 1 if it needs a borrow.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Decoder.h"
#include "emulator/machine/Lanes.h"

using namespace fsdprt::emulate;

namespace {
__extension__ typedef unsigned __int128 Wide;

/// Bits of Instruction::modifier.
enum : uint8_t { Subtracts = 1, TakesCarry = 2, SetsCarry = 4, Multiplies = 8, IsHigh = 16 };

template <typename T>
FSDPRT_INLINE T product(uint64_t a, uint64_t b, bool isHigh, bool isSigned) {
  if (!isHigh)
    return T(T(a) * T(b));
  if (sizeof(T) == 4)
    return isSigned ? T((int64_t(int32_t(a)) * int32_t(b)) >> 32)
                    : T((uint64_t(uint32_t(a)) * uint32_t(b)) >> 32);
  __extension__ typedef __int128 SignedWide;
  return isSigned ? T((SignedWide(int64_t(a)) * int64_t(b)) >> 64) : T((Wide(a) * b) >> 64);
}

template <typename T>
Step carry(Warp &warp, const Instruction &i, LaneMask active) {
  LaneMask &carries = warp.predicate(i.payload);
  uint8_t how = i.modifier;
  T result[warpSize];
  LaneMask out = 0;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    T a = warp.at<T>(i.in[0])[lane], b = warp.at<T>(i.in[1])[lane];
    if (how & Multiplies) {
      a = product<T>(a, b, how & IsHigh, i.modifier2);
      b = warp.at<T>(i.in[2])[lane];
    }
    unsigned in = how & TakesCarry ? carries >> lane & 1 : 0;
    Wide wide = how & Subtracts ? Wide(a) - b - in : Wide(a) + b + in;
    result[lane] = T(wide);
    out |= LaneMask(unsigned(wide >> (8 * sizeof(T))) & 1) << lane;
  }
  keep(warp.at<T>(i.out[0]), result, active);
  if (how & SetsCarry)
    keepBits(carries, out, active);
  return Step::Next;
}
} // namespace

bool fsdprt::emulate::decodeCarry(Decoder &d) {
  std::string_view name = d.modifiers.name();
  bool multiplies = name.substr(0, 3) == "mad", subtracts = name.substr(0, 3) == "sub";
  uint8_t how = subtracts ? Subtracts : 0;
  if (name.back() == 'c')
    how |= TakesCarry;
  if (d.modifiers.take("cc"))
    how |= SetsCarry;
  int part = multiplies ? d.modifiers.takeOneOf({"lo", "hi"}) : 0;
  if (part < 0)
    d.fail("expected .lo or .hi");
  if (multiplies)
    how |= Multiplies | (part ? IsHigh : 0);
  d.operandCount(3 + multiplies, 3 + multiplies);
  Type type = d.typeOneOf({Type::U32, Type::S32, Type::B32, Type::U64, Type::S64, Type::B64});
  std::vector<Slot> ins{d.source(1, type), d.source(2, type)};
  if (multiplies)
    ins.push_back(d.source(3, type));
  Instruction &i =
      d.emit(sizeOf(type) == 4 ? carry<uint32_t> : carry<uint64_t>, {d.destination(0, type)}, ins);
  i.modifier = how;
  i.modifier2 = isSigned(type);
  i.payload = d.conditionCode();
  return true;
}
