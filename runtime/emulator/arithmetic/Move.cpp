//===- Move.cpp - Copies of registers ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Data Movement and Conversion Instructions: mov". mov copies a register,
// packs several registers into one register, or unpacks a register into several. mov also reads the
// special registers whose values change while a warp runs.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Decoder.h"
#include "emulator/machine/Lanes.h"

using namespace fsdprt::emulate;

namespace {
struct Same {
  template <typename T>
  static FSDPRT_INLINE T apply(T a) {
    return a;
  }
};

Step copyPredicate(Warp &warp, const Instruction &i, LaneMask active) {
  keepBits(warp.predicate(i.out[0]), warp.predicate(i.in[0]), active);
  return Step::Next;
}

/// Packs several registers into one register, whose lowest bits are the first of these registers.
template <typename Whole, typename Part>
struct Join {
  static FSDPRT_INLINE Step run(Warp &warp, const Instruction &i, LaneMask active) {
    Whole result[warpSize] = {};
    for (unsigned k = 0; k < sizeof(Whole) / sizeof(Part); ++k)
      for (unsigned lane = 0; lane < warpSize; ++lane)
        result[lane] |= Whole(warp.at<Part>(i.in[k])[lane]) << (8 * sizeof(Part) * k);
    keep(warp.at<Whole>(i.out[0]), result, active);
    return Step::Next;
  }
};
template <typename Whole, typename Part>
struct SplitUp {
  static FSDPRT_INLINE Step run(Warp &warp, const Instruction &i, LaneMask active) {
    Whole whole[warpSize];
    std::memcpy(whole, warp.at<Whole>(i.in[0]), sizeof whole);
    for (unsigned k = 0; k < i.outCount; ++k) {
      Part result[warpSize];
      for (unsigned lane = 0; lane < warpSize; ++lane)
        result[lane] = Part(whole[lane] >> (8 * sizeof(Part) * k));
      keep(warp.at<Part>(i.out[k]), result, active);
    }
    return Step::Next;
  }
};

/// Reads %clock or %globaltimer. The value of both registers is the number of instructions that the
/// warps of the launch have executed so far.
template <typename T>
Step readClock(Warp &warp, const Instruction &i, LaneMask active) {
  const Grid &grid = warp.block.cluster.grid;
  uint64_t steps = grid.launch.stepLimit - grid.stepsLeft;
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (active >> lane & 1)
      warp.at<T>(i.out[0])[lane] = T(i.modifier ? steps >> 32 : steps);
  return Step::Next;
}
} // namespace

static void decodeParts(Decoder &d, Type type) {
  bool joins = d.operand(1).kind == OperandKind::Vector;
  auto parts = Decoder::elements(d.operand(joins ? 1 : 0));
  unsigned size = sizeOf(type), count = parts.size();
  if (count != 2 && count != 4)
    d.fail("expected 2 or 4 parts");
  unsigned part = size / count;
  if (part < 2 || size > 8)
    d.fail("parts of 8 or less bits are not supported");
  Type partType = part == 2 ? Type::B16 : Type::B32;
  std::vector<Slot> slots;
  for (const Operand *each : parts)
    slots.push_back(joins ? d.source(*each, partType) : d.destination(*each, partType));
  Handler join = size == 4   ? handler<Join<uint32_t, uint16_t>>()
                 : part == 2 ? handler<Join<uint64_t, uint16_t>>()
                             : handler<Join<uint64_t, uint32_t>>();
  Handler split = size == 4   ? handler<SplitUp<uint32_t, uint16_t>>()
                  : part == 2 ? handler<SplitUp<uint64_t, uint16_t>>()
                              : handler<SplitUp<uint64_t, uint32_t>>();
  Instruction &i = joins ? d.emit(join, {d.destination(0, type)}, slots)
                         : d.emit(split, slots, {d.source(1, type)});
  i.flow = Flow::Moves;
}

bool fsdprt::emulate::decodeMove(Decoder &d) {
  d.operandCount(2, 2);
  Type type = d.type();
  const Operand &to = d.operand(0), &from = d.operand(1);
  if (to.kind == OperandKind::Vector || from.kind == OperandKind::Vector) {
    decodeParts(d, type);
    return true;
  }
  std::string_view special = from.kind == OperandKind::Name ? from.text : "";
  if (special.substr(0, 6) == "%clock" || special.substr(0, 12) == "%globaltimer") {
    bool isHigh = special == "%clock_hi" || special == "%globaltimer_hi";
    d.emit(sizeOf(type) == 8 ? readClock<uint64_t> : readClock<uint32_t>, {d.destination(0, type)},
           {})
        .modifier = isHigh;
    return true;
  }
  Handler run = nullptr;
  if (type == Type::Pred)
    run = copyPredicate;
  else if (sizeOf(type) == 2)
    run = unary<Same, uint16_t>();
  else if (sizeOf(type) == 4)
    run = unary<Same, uint32_t>();
  else if (sizeOf(type) == 8)
    run = unary<Same, uint64_t>();
  else
    d.fail("mov of type %s is not supported", nameOf(type));
  d.emit(run, {d.destination(0, type)}, {d.source(1, type)}).flow = Flow::Moves;
  return true;
}
