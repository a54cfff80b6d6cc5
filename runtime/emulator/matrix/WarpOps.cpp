//===- WarpOps.cpp - Communication between lanes ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Data Movement and Conversion Instructions: shfl.sync" and "Parallel
// Synchronization and Communication Instructions: vote.sync, match.sync, redux.sync, activemask,
// elect.sync". All lanes in the mask of an instruction must execute the instruction at the same
// time.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Decoder.h"
#include "emulator/machine/Lanes.h"

using namespace fsdprt::emulate;

namespace {
/// Returns the mask of the lanes that take part in the instruction. Fails unless all lanes of the
/// mask execute the instruction and have equal masks.
LaneMask members(Warp &warp, const Instruction &i, Slot slot, LaneMask active) {
  const LaneMask *masks = warp.at<LaneMask>(slot);
  unsigned first = __builtin_ctz(active);
  LaneMask mask = masks[first];
  for (unsigned lane = first; lane < warpSize; ++lane) {
    if (!(active >> lane & 1))
      continue;
    if (!(masks[lane] >> lane & 1))
      warp.fail(LaneMask(1) << lane, "the mask 0x%08x does not name the lane itself", masks[lane]);
    if (masks[lane] != mask)
      warp.fail(LaneMask(1) << lane, "the mask is 0x%08x, but 0x%08x in lane %u", masks[lane], mask,
                first);
  }
  LaneMask missing = mask & warp.live & ~active;
  if (missing)
    warp.fail(active, "the mask 0x%08x names %s, which %s not here", mask,
              warp.nameOfLanes(missing).c_str(), missing & (missing - 1) ? "are" : "is");
  return mask & active;
}

enum Mode : uint8_t { Up, Down, Butterfly, Index };

/// Sets `from` to the lane whose value `lane` reads. Returns true if the lane `from` is in range,
/// as the pseudo-code of PTX ISA defines the range.
bool sourceLane(uint8_t mode, unsigned lane, uint32_t b, uint32_t c, unsigned &from) {
  unsigned value = b & 31, clamp = c & 31, segment = c >> 8 & 31;
  unsigned most = (lane & segment) | (clamp & ~segment & 31), least = lane & segment;
  int source = 0;
  bool isInside = true;
  switch (mode) {
  case Up:
    source = int(lane) - int(value), isInside = source >= int(most);
    break;
  case Down:
    source = lane + value, isInside = source <= int(most);
    break;
  case Butterfly:
    source = lane ^ value, isInside = source <= int(most);
    break;
  default:
    source = least | (value & ~segment & 31), isInside = source <= int(most);
  }
  from = isInside ? source : lane;
  return isInside;
}

Step shuffle(Warp &warp, const Instruction &i, LaneMask active) {
  LaneMask here = i.inCount > 3 ? members(warp, i, i.in[3], active) : active;
  const uint32_t *a = warp.at<uint32_t>(i.in[0]), *b = warp.at<uint32_t>(i.in[1]),
                 *c = warp.at<uint32_t>(i.in[2]);
  uint32_t result[warpSize];
  LaneMask inside = 0;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    unsigned from = lane;
    if (active >> lane & 1) {
      inside |= LaneMask(sourceLane(i.modifier, lane, b[lane], c[lane], from)) << lane;
      if (!(here >> from & 1))
        warp.fail(LaneMask(1) << lane, "reads lane %u, which does not take part", from);
    }
    result[lane] = a[from];
  }
  keep(warp.at<uint32_t>(i.out[0]), result, active);
  if (i.outCount > 1)
    keepBits(warp.predicate(i.out[1]), inside, active);
  return Step::Next;
}

Step vote(Warp &warp, const Instruction &i, LaneMask active) {
  LaneMask here = members(warp, i, i.in[1], active), holds = warp.predicate(i.in[0]) & here;
  if (i.modifier == 'b') {
    for (unsigned lane = 0; lane < warpSize; ++lane)
      if (active >> lane & 1)
        warp.at<uint32_t>(i.out[0])[lane] = holds;
    return Step::Next;
  }
  bool all = holds == here, result = i.modifier == 'a'   ? all
                                     : i.modifier == 'o' ? holds != 0
                                                         : all || !holds;
  keepBits(warp.predicate(i.out[0]), result ? allLanes : 0, active);
  return Step::Next;
}

template <typename T>
Step match(Warp &warp, const Instruction &i, LaneMask active) {
  LaneMask here = members(warp, i, i.in[1], active);
  const T *a = warp.at<T>(i.in[0]);
  bool isAll = i.modifier == 'a';
  LaneMask same[warpSize] = {};
  for (unsigned lane = 0; lane < warpSize; ++lane)
    for (unsigned other = 0; other < warpSize; ++other)
      same[lane] |= LaneMask((here >> other & 1) && a[lane] == a[other]) << other;
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (active >> lane & 1)
      warp.at<uint32_t>(i.out[0])[lane] = isAll && same[lane] != here ? 0 : same[lane];
  if (i.outCount > 1)
    keepBits(warp.predicate(i.out[1]), same[__builtin_ctz(active)] == here ? allLanes : 0, active);
  return Step::Next;
}

enum Reduction : uint8_t { Add, Min, Max, And, Or, Xor };

template <typename T>
T reduced(uint8_t op, T a, T b) {
  switch (op) {
  case Add:
    return uint32_t(a) + uint32_t(b);
  case Min:
    return b < a ? b : a;
  case Max:
    return a < b ? b : a;
  case And:
    return a & b;
  case Or:
    return a | b;
  default:
    return a ^ b;
  }
}

template <typename T>
Step reduce(Warp &warp, const Instruction &i, LaneMask active) {
  LaneMask here = members(warp, i, i.in[1], active);
  const T *a = warp.at<T>(i.in[0]);
  T result = a[__builtin_ctz(here)];
  for (LaneMask rest = here & (here - 1); rest; rest &= rest - 1)
    result = reduced(i.modifier, result, a[__builtin_ctz(rest)]);
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (active >> lane & 1)
      warp.at<T>(i.out[0])[lane] = result;
  return Step::Next;
}

Step activeMask(Warp &warp, const Instruction &i, LaneMask active) {
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (active >> lane & 1)
      warp.at<uint32_t>(i.out[0])[lane] = active;
  return Step::Next;
}

/// Executes elect.sync: elects the lowest lane of the mask.
Step elect(Warp &warp, const Instruction &i, LaneMask active) {
  LaneMask here = members(warp, i, i.in[0], active);
  unsigned leader = __builtin_ctz(here);
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (active >> lane & 1)
      warp.at<uint32_t>(i.out[0])[lane] = leader;
  keepBits(warp.predicate(i.out[1]), LaneMask(1) << leader, active);
  return Step::Next;
}
} // namespace

/// Returns the slots of a destination: a register d, or a pair d|p of a register and a predicate.
static std::vector<Slot> resultAndPredicate(Decoder &d, bool needsBoth) {
  const Operand &to = d.operand(0);
  if (to.kind == OperandKind::Pair)
    return {d.destination(to.elements[0], Type::B32), d.destination(to.elements[1], Type::Pred)};
  if (needsBoth)
    d.failAt(to.at, "expected a register and a predicate, d|p");
  return {d.destination(to, Type::B32)};
}

static void decodeShuffle(Decoder &d) {
  bool isSync = d.modifiers.take("sync");
  int mode = d.modifiers.takeOneOf({"up", "down", "bfly", "idx"});
  if (mode < 0)
    d.fail("expected .up, .down, .bfly or .idx");
  d.typeOneOf({Type::B32});
  d.operandCount(4 + isSync, 4 + isSync);
  std::vector<Slot> ins;
  for (unsigned k = 1; k < d.operandCount(); ++k)
    ins.push_back(d.source(k, Type::B32));
  d.emit(shuffle, resultAndPredicate(d, false), ins).modifier = mode;
}

static void decodeVote(Decoder &d) {
  if (!d.modifiers.take("sync"))
    d.fail("vote without .sync is not supported");
  int mode = d.modifiers.takeOneOf({"all", "any", "uni", "ballot"});
  if (mode < 0)
    d.fail("expected .all, .any, .uni or .ballot");
  d.operandCount(3, 3);
  Type type = mode == 3 ? d.typeOneOf({Type::B32}) : d.typeOneOf({Type::Pred});
  d.emit(vote, {d.destination(0, type)}, {d.predicate(d.operand(1)), d.source(2, Type::B32)})
      .modifier = "aoub"[mode];
}

static void decodeMatch(Decoder &d) {
  d.modifiers.take("sync");
  int mode = d.modifiers.takeOneOf({"all", "any"});
  Type type = d.typeOneOf({Type::B32, Type::B64});
  if (mode < 0)
    d.fail("expected .all or .any");
  d.operandCount(3, 3);
  d.emit(type == Type::B32 ? match<uint32_t> : match<uint64_t>, resultAndPredicate(d, false),
         {d.source(1, type), d.source(2, Type::B32)})
      .modifier = mode == 0 ? 'a' : 'n';
}

static void decodeReduction(Decoder &d) {
  d.modifiers.take("sync");
  int op = d.modifiers.takeOneOf({"add", "min", "max", "and", "or", "xor"});
  Type type = d.typeOneOf({Type::U32, Type::S32, Type::B32});
  if (op < 0 || (op >= And) != (type == Type::B32))
    d.fail("expected .add, .min or .max of u32 or s32, or .and, .or or .xor of b32");
  d.operandCount(3, 3);
  d.emit(type == Type::S32 ? reduce<int32_t> : reduce<uint32_t>, {d.destination(0, type)},
         {d.source(1, type), d.source(2, Type::B32)})
      .modifier = op;
}

bool fsdprt::emulate::decodeWarp(Decoder &d) {
  std::string_view name = d.modifiers.name();
  if (name == "shfl") {
    decodeShuffle(d);
  } else if (name == "vote") {
    decodeVote(d);
  } else if (name == "match") {
    decodeMatch(d);
  } else if (name == "redux") {
    decodeReduction(d);
  } else if (name == "activemask") {
    d.typeOneOf({Type::B32});
    d.operandCount(1, 1);
    d.emit(activeMask, {d.destination(0, Type::B32)}, {});
  } else {
    d.modifiers.take("sync");
    d.operandCount(2, 2);
    d.emit(elect, resultAndPredicate(d, true), {d.source(1, Type::B32)});
  }
  return true;
}
