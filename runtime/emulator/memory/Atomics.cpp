//===- Atomics.cpp - Atomic operations --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Parallel Synchronization and Communication Instructions: atom, red". The
// operations of the lanes are executed in the order of the lanes.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Lanes.h"
#include "emulator/memory/Combine.h"
#include "emulator/memory/MemoryModifiers.h"

using namespace fsdprt::emulate;

namespace {
struct Plan {
  Space space;
  Type type;
  uint8_t count; ///< number of elements
  Combination op;
  bool isWide, hasResult;
  Order order;
};
static_assert(sizeof(Plan) <= 8);

void updateLane(Warp &warp, const Instruction &i, const Plan &plan, unsigned lane, Access &access,
                Traffic &traffic) {
  unsigned size = sizeOf(plan.type);
  uint64_t address = addressOf(warp, i.in[0], plan.isWide, i.immediate, lane);
  Place place = access.resolve(plan.space, address, size * plan.count, lane);
  if (!place.isGlobal && !place.isShared)
    warp.fail(LaneMask(1) << lane, "atomic operations are for global and shared memory");
  access.check(place, size * plan.count, lane);
  strongRead(warp, lane, place, plan.order);
  strongWrite(warp, lane, place, plan.order);
  for (unsigned k = 0; k < plan.count; ++k) {
    uint64_t old = 0, c = plan.op == Combination::Cas ? readBits(warp, i.in[2], size, lane) : 0;
    std::memcpy(&old, place.bytes() + k * size, size);
    uint64_t value = combine(plan.op, plan.type, place.isGlobal, old,
                             readBits(warp, i.in[1 + k], size, lane), c);
    std::memcpy(place.bytes() + k * size, &value, size);
    if (plan.hasResult)
      writeBits(warp, i.out[k], size, lane, old);
  }
  traffic.add(place, address, size * plan.count);
}

Step atomic(Warp &warp, const Instruction &i, LaneMask active) {
  Plan plan;
  std::memcpy(&plan, &i.payload, sizeof plan);
  Access access(warp, Touch::Updates);
  access.isStrong = true;
  Traffic traffic;
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (active >> lane & 1)
      updateLane(warp, i, plan, lane, access, traffic);
  Counters &counters = warp.block.cluster.grid.counters;
  traffic.count(counters, true);
  counters.atomics += __builtin_popcount(active);
  return Step::Next;
}
} // namespace

bool fsdprt::emulate::decodeAtomic(Decoder &d) {
  if (d.modifiers.has("async"))
    return decodeAsyncStore(d);
  Plan plan = {};
  plan.hasResult = d.modifiers.name() == "atom";
  plan.space = takeSpace(d.modifiers);
  plan.order = takeOrder(d.modifiers);
  if (plan.order == Order::Weak)
    plan.order = Order::Relaxed;
  bool hasHint = takeCaches(d.modifiers);
  plan.op = takeCombination(d);
  d.modifiers.take("noftz");
  plan.count = takeVector(d.modifiers);
  plan.type =
      d.typeOneOf({Type::B16, Type::B32, Type::B64, Type::U32, Type::U64, Type::S32, Type::S64,
                   Type::F16, Type::F16x2, Type::BF16, Type::BF16x2, Type::F32, Type::F64});
  checkCombination(d, plan.op, plan.type);
  unsigned at = plan.hasResult, count = 2 + at + (plan.op == Combination::Cas) + hasHint;
  d.operandCount(count, count);
  int64_t offset;
  std::vector<Slot> outs, ins{d.address(d.operand(at), plan.space, offset, plan.isWide)};
  auto values = Decoder::elements(d.operand(at + 1));
  if (values.size() != plan.count ||
      (plan.hasResult && Decoder::elements(d.operand(0)).size() != plan.count))
    d.fail("expected %u registers", plan.count);
  for (const Operand *value : values)
    ins.push_back(d.source(*value, plan.type));
  if (plan.op == Combination::Cas)
    ins.push_back(d.source(at + 2, plan.type));
  if (plan.hasResult)
    for (const Operand *to : Decoder::elements(d.operand(0)))
      outs.push_back(d.destination(*to, plan.type));
  Instruction &i = d.emit(atomic, outs, ins);
  i.immediate = offset;
  std::memcpy(&i.payload, &plan, sizeof plan);
  return true;
}
