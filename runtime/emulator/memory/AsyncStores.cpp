//===- AsyncStores.cpp - st.async and red.async -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Data Movement and Conversion Instructions: st.async" and "Parallel
// Synchronization and Communication Instructions: red.async". Both instructions write the values of
// registers to the shared memory of any block of the cluster. An mbarrier in this block counts the
// written bytes.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Lanes.h"
#include "emulator/memory/AsyncProxy.h"
#include "emulator/memory/MemoryModifiers.h"

using namespace fsdprt::emulate;

namespace {
struct Plan {
  AddressOperand to{Space::Shared}, barrier{Space::Shared};
  Type type = Type::B32;
  unsigned count = 1; ///< number of elements to store
  std::optional<Reduction> reduction;
};

void storeLane(Warp &warp, const Instruction &i, const Plan &plan, unsigned lane) {
  unsigned size = sizeOf(plan.type), bytes = size * plan.count;
  uint8_t data[32];
  for (unsigned k = 0; k < plan.count; ++k) {
    uint64_t bits = readBits(warp, i.in[k], size, lane);
    std::memcpy(data + k * size, &bits, size);
  }
  AsyncCopy copy(warp, lane, false);
  Place place = copy.writeTo(Space::Shared, plan.to.at(warp, lane), bytes, bytes);
  copy.write(place, data, bytes, plan.reduction);
  copy.complete(plan.barrier.at(warp, lane), bytes, *place.storage);
}

Step store(Warp &warp, const Instruction &i, LaneMask active) {
  for (LaneMask rest = active; rest; rest &= rest - 1)
    storeLane(warp, i, *static_cast<const Plan *>(i.plan), __builtin_ctz(rest));
  return Step::Next;
}
} // namespace

bool fsdprt::emulate::decodeAsyncStore(Decoder &d) {
  Plan plan;
  bool isReduction = d.modifiers.name() == "red";
  d.modifiers.take("async");
  takeOrder(d.modifiers);
  takeSpace(d.modifiers);
  if (!d.modifiers.take("mbarrier::complete_tx::bytes"))
    d.fail("expected .mbarrier::complete_tx::bytes");
  if (isReduction)
    plan.reduction = Reduction{takeCombination(d), Type::B32};
  plan.count = takeVector(d.modifiers);
  plan.type = d.typeOneOf(
      {Type::B32, Type::B64, Type::U32, Type::U64, Type::S32, Type::S64, Type::F32, Type::F64});
  if (isReduction) {
    plan.reduction->type = plan.type;
    checkCombination(d, plan.reduction->op, plan.type);
  }
  if (plan.count > 4 || (isReduction && (plan.count > 1 || isFloat(plan.type))))
    d.fail("unsupported vector of %s", nameOf(plan.type));
  d.operandCount(3, 3);
  plan.to = {d, d.operand(0), Space::Shared};
  plan.barrier = {d, d.operand(2), Space::Shared};
  auto values = Decoder::elements(d.operand(1));
  if (values.size() != plan.count)
    d.fail("expected %u registers, found %zu", plan.count, values.size());
  std::vector<Slot> ins;
  for (const Operand *value : values)
    ins.push_back(d.source(*value, plan.type));
  ins.insert(ins.end(), {plan.to.base, plan.barrier.base});
  d.emit(store, {}, ins, plan);
  return true;
}
