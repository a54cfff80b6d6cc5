//===- LoadStore.cpp - Loads, stores and addresses --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Data Movement and Conversion Instructions: ld, ldu, st, prefetch, cvta,
// isspacep, mapa".
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Lanes.h"
#include "emulator/memory/MemoryModifiers.h"

using namespace fsdprt::emulate;

namespace {
struct Plan {
  Space space;
  Type type;
  uint8_t count;        ///< number of elements
  uint8_t registerSize; ///< size in bytes of the register of an element
  bool isWide;          ///< true if the base address has 64 bits
  Order order;
};

Plan planOf(const Instruction &i) {
  Plan plan;
  std::memcpy(&plan, &i.payload, sizeof plan);
  return plan;
}
static_assert(sizeof(Plan) <= 8);

constexpr unsigned maxBytes = 32;

template <typename R, typename M>
void unpackElement(Warp &warp, Slot to, const uint8_t (*from)[maxBytes], unsigned offset,
                   LaneMask active) {
  R *out = warp.at<R>(to);
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (active >> lane & 1) {
      M value;
      std::memcpy(&value, from[lane] + offset, sizeof value);
      out[lane] = R(value);
    }
}

/// Copies an element of each active lane to a register. If the register is wider than a signed
/// element, the sign of the element is extended.
template <typename R>
void unpack(Warp &warp, const Plan &plan, Slot to, const uint8_t (*from)[maxBytes], unsigned offset,
            LaneMask active) {
  switch (sizeOf(plan.type)) {
  case 1:
    return isSigned(plan.type) ? unpackElement<R, int8_t>(warp, to, from, offset, active)
                               : unpackElement<R, uint8_t>(warp, to, from, offset, active);
  case 2:
    return isSigned(plan.type) && !isFloat(plan.type)
               ? unpackElement<R, int16_t>(warp, to, from, offset, active)
               : unpackElement<R, uint16_t>(warp, to, from, offset, active);
  case 4:
    return isSigned(plan.type) && !isFloat(plan.type)
               ? unpackElement<R, int32_t>(warp, to, from, offset, active)
               : unpackElement<R, uint32_t>(warp, to, from, offset, active);
  default:
    return unpackElement<R, uint64_t>(warp, to, from, offset, active);
  }
}

template <typename R>
void pack(Warp &warp, Slot from, uint8_t (*to)[maxBytes], unsigned offset, unsigned size,
          LaneMask active) {
  const R *in = warp.at<R>(from);
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (active >> lane & 1)
      std::memcpy(to[lane] + offset, &in[lane], size);
}

Step load(Warp &warp, const Instruction &i, LaneMask active) {
  Plan plan = planOf(i);
  unsigned size = sizeOf(plan.type), bytes = size * plan.count;
  uint8_t data[warpSize][maxBytes];
  Access access(warp, Touch::Reads);
  access.isStrong = plan.order != Order::Weak;
  Traffic traffic;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    if (!(active >> lane & 1))
      continue;
    uint64_t address = addressOf(warp, i.in[0], plan.isWide, i.immediate, lane);
    Place place = access.resolve(plan.space, address, bytes, lane);
    access.check(place, bytes, lane);
    std::memcpy(data[lane], place.bytes(), bytes);
    traffic.add(place, address, bytes);
    if (access.isStrong)
      strongRead(warp, lane, place, plan.order);
  }
  traffic.count(warp.block.cluster.grid.counters, false);
  for (unsigned k = 0; k < plan.count; ++k) {
    if (plan.registerSize == 2)
      unpack<uint16_t>(warp, plan, i.out[k], data, k * size, active);
    else if (plan.registerSize == 4)
      unpack<uint32_t>(warp, plan, i.out[k], data, k * size, active);
    else
      unpack<uint64_t>(warp, plan, i.out[k], data, k * size, active);
  }
  return Step::Next;
}

Step store(Warp &warp, const Instruction &i, LaneMask active) {
  Plan plan = planOf(i);
  unsigned size = sizeOf(plan.type), bytes = size * plan.count;
  uint8_t data[warpSize][maxBytes];
  for (unsigned k = 0; k < plan.count; ++k) {
    if (plan.registerSize == 2)
      pack<uint16_t>(warp, i.in[k + 1], data, k * size, size, active);
    else if (plan.registerSize == 4)
      pack<uint32_t>(warp, i.in[k + 1], data, k * size, size, active);
    else
      pack<uint64_t>(warp, i.in[k + 1], data, k * size, size, active);
  }
  Access access(warp, Touch::Writes);
  access.isStrong = plan.order != Order::Weak;
  Traffic traffic;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    if (!(active >> lane & 1))
      continue;
    uint64_t address = addressOf(warp, i.in[0], plan.isWide, i.immediate, lane);
    Place place = access.resolve(plan.space, address, bytes, lane);
    access.check(place, bytes, lane, data[lane]);
    if (access.isStrong)
      strongWrite(warp, lane, place, plan.order);
    std::memcpy(place.bytes(), data[lane], bytes);
    traffic.add(place, address, bytes);
  }
  traffic.count(warp.block.cluster.grid.counters, true);
  return Step::Next;
}

Step nothing(Warp &warp, const Instruction &i, LaneMask active) { return Step::Next; }

uint64_t windowOf(Space space) {
  return space == Space::Shared  ? sharedWindow
         : space == Space::Local ? localWindow
         : space == Space::Param ? parameterWindow
                                 : 0;
}

template <typename T>
Step convertAddress(Warp &warp, const Instruction &i, LaneMask active) {
  uint64_t window = windowOf(static_cast<Space>(i.modifier));
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    if (!(active >> lane & 1))
      continue;
    uint64_t address = warp.at<T>(i.in[0])[lane];
    bool isInside = address - window < uint64_t(1) << windowShift;
    if (i.modifier2 && window && !isInside)
      warp.fail(LaneMask(1) << lane, "generic address 0x%llx is not in %s memory",
                static_cast<unsigned long long>(address), nameOf(static_cast<Space>(i.modifier)));
    address = i.modifier2 ? address - window : address + window;
    // A byte in the shared memory of the executing block has two addresses: one contains the rank
    // of the block, the other does not.
    uint64_t rank = uint64_t(warp.block.rank + 1) << rankShift;
    if (window == sharedWindow && !i.modifier2 && (address - window) >> rankShift == 0)
      address += rank;
    if (window == sharedWindow && i.modifier2 && address >> rankShift == warp.block.rank + 1)
      address -= rank;
    warp.at<T>(i.out[0])[lane] = T(address);
  }
  return Step::Next;
}

Step isInSpace(Warp &warp, const Instruction &i, LaneMask active) {
  LaneMask result = 0;
  uint64_t window = windowOf(static_cast<Space>(i.modifier));
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    uint64_t address = warp.at<uint64_t>(i.in[0])[lane], top = address >> windowShift;
    bool isWindowed = top >= 1 && top <= 3;
    bool holds = window ? address - window < uint64_t(1) << windowShift : !isWindowed;
    if (static_cast<Space>(i.modifier) == Space::Const ||
        static_cast<Space>(i.modifier) == Space::Global) {
      Storage *storage = isWindowed ? nullptr : warp.block.cluster.grid.memory.find(address);
      holds = storage && storage->isReadOnly == (static_cast<Space>(i.modifier) == Space::Const);
    }
    result |= LaneMask(holds) << lane;
  }
  keepBits(warp.predicate(i.out[0]), result, active);
  return Step::Next;
}

/// Executes mapa: computes the address in another block of the cluster that corresponds to a shared
/// address of this block.
template <typename T>
Step mapAddress(Warp &warp, const Instruction &i, LaneMask active) {
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    if (!(active >> lane & 1))
      continue;
    uint64_t address = warp.at<T>(i.in[0])[lane];
    uint32_t rank = warp.at<uint32_t>(i.in[1])[lane];
    if (rank >= warp.block.cluster.blocks.size())
      warp.fail(LaneMask(1) << lane, "rank %u in a cluster of %zu blocks", rank,
                warp.block.cluster.blocks.size());
    uint64_t window = i.modifier ? 0 : sharedWindow;
    uint64_t offset = (address - window) & ((uint64_t(1) << rankShift) - 1);
    warp.at<T>(i.out[0])[lane] = T(window + offset + (uint64_t(rank + 1) << rankShift));
  }
  return Step::Next;
}
} // namespace

/// Returns the slots of the elements of a vector operand. Sets `plan.registerSize` to the size of
/// the registers. All registers must have equal sizes. An element "_" has no register, and the slot
/// that is returned for it is never read.
static std::vector<Slot> elementSlots(Decoder &d, const Operand &operand, Plan &plan, bool isLoad) {
  auto elements = Decoder::elements(operand);
  if (elements.size() != plan.count)
    d.fail("expected %u registers in the vector, found %zu", plan.count, elements.size());
  std::vector<Slot> slots;
  plan.registerSize = 0;
  for (const Operand *element : elements) {
    if (element->kind == OperandKind::Sink) {
      slots.push_back(d.scratch(8));
      continue;
    }
    unsigned size = 0;
    slots.push_back(isLoad ? d.wideDestination(*element, plan.type, size)
                           : d.wideSource(*element, plan.type, size));
    if (plan.registerSize && plan.registerSize != size)
      d.fail("the registers of a vector have different sizes");
    plan.registerSize = size;
  }
  if (plan.registerSize == 0)
    plan.registerSize = 8;
  return slots;
}

bool fsdprt::emulate::decodeLoadStore(Decoder &d) {
  std::string_view name = d.modifiers.name();
  if (name != "ld" && name != "ldu" && name != "st") {
    // prefetch and similar instructions are hints for caches, and have no effect in the emulator.
    while (!d.modifiers.left().empty())
      d.modifiers.take(d.modifiers.left()[0]);
    d.emit(nothing, {}, {});
    return true;
  }
  if (d.modifiers.has("async"))
    return decodeAsyncStore(d);
  bool isLoad = name != "st";
  Plan plan = {};
  plan.space = takeSpace(d.modifiers);
  plan.order = takeOrder(d.modifiers);
  bool hasHint = takeCaches(d.modifiers);
  plan.count = takeVector(d.modifiers);
  plan.type = d.type();
  unsigned bytes = sizeOf(plan.type) * plan.count;
  if (!bytes || sizeOf(plan.type) > 8 || bytes > maxBytes)
    d.fail("no vector of %u elements of type %s", plan.count, nameOf(plan.type));
  d.operandCount(2 + hasHint, 2 + hasHint);
  std::vector<Slot> slots = elementSlots(d, d.operand(isLoad ? 0 : 1), plan, isLoad);
  int64_t offset;
  Slot base = d.address(d.operand(isLoad ? 1 : 0), plan.space, offset, plan.isWide);
  if (!isLoad)
    slots.insert(slots.begin(), base);
  Instruction &i = isLoad ? d.emit(load, slots, {base}) : d.emit(store, {}, slots);
  i.immediate = offset;
  std::memcpy(&i.payload, &plan, sizeof plan);
  return true;
}

bool fsdprt::emulate::decodeAddresses(Decoder &d) {
  std::string_view name = d.modifiers.name();
  bool goesBack = d.modifiers.take("to");
  Space space = takeSpace(d.modifiers);
  if (name == "isspacep") {
    d.operandCount(2, 2);
    d.emit(isInSpace, {d.destination(0, Type::Pred)}, {d.source(1, Type::U64)}).modifier =
        static_cast<uint8_t>(space);
    return true;
  }
  Type type = d.typeOneOf({Type::U32, Type::U64});
  if (name == "mapa") {
    d.operandCount(3, 3);
    d.emit(type == Type::U32 ? mapAddress<uint32_t> : mapAddress<uint64_t>,
           {d.destination(0, type)}, {d.source(1, type), d.source(2, Type::U32)})
        .modifier = space == Space::Shared;
    return true;
  }
  if (space == Space::Generic || type != Type::U64)
    d.fail("expected a space and .u64 in '%s'", std::string(d.statement->opcode).c_str());
  d.operandCount(2, 2);
  Instruction &i = d.emit(convertAddress<uint64_t>, {d.destination(0, type)}, {d.source(1, type)});
  i.modifier = static_cast<uint8_t>(space);
  i.modifier2 = goesBack;
  return true;
}
