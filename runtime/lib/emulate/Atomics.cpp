//===- Atomics.cpp - Atomic operations --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: atom, red". Lanes act in their order. Additions of f32
// in global memory flush subnormal numbers, as the document says.
//
//===----------------------------------------------------------------------===//

#include "emulate/Formats.h"
#include "emulate/MemoryModifiers.h"

using namespace fsdprt::emulate;

namespace {
enum class Op : uint8_t { Add, Min, Max, Inc, Dec, Exch, Cas, And, Or, Xor };

struct Plan {
  Space space;
  Type type;
  uint8_t count; ///< of elements
  Op op;
  bool isWide, hasResult;
  Order order;
};
static_assert(sizeof(Plan) <= 8);

template <typename T> T integerResult(Op op, T old, T b, T c) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
  case Op::Add: return U(old) + U(b);
  case Op::Min: return b < old ? b : old;
  case Op::Max: return old < b ? b : old;
  case Op::Inc: return old >= b ? 0 : old + 1;
  case Op::Dec: return old == 0 || old > b ? b : old - 1;
  case Op::Exch: return b;
  case Op::Cas: return old == b ? c : old;
  case Op::And: return old & b;
  case Op::Or: return old | b;
  case Op::Xor: return old ^ b;
  }
  return old;
}

template <typename F> uint16_t halfResult(Op op, uint16_t old, uint16_t b) {
  float x = F::widen(old), y = F::widen(b);
  if (op == Op::Add)
    return F::narrow(x + y);
  if (x != x || y != y)
    return x != x ? b : old;
  return (x < y) == (op == Op::Min) ? old : b;
}

template <typename F> uint32_t pairResult(Op op, uint32_t old, uint32_t b) {
  return uint32_t(halfResult<F>(op, old >> 16, b >> 16)) << 16 | halfResult<F>(op, old, b);
}

uint64_t newValue(const Plan &plan, bool isGlobal, uint64_t old, uint64_t b, uint64_t c) {
  switch (plan.type) {
  case Type::F32: {
    float x = bitsAs<float>(uint32_t(old)), y = bitsAs<float>(uint32_t(b));
    return bitsAs<uint32_t>(canonical(isGlobal ? flushed(flushed(x) + flushed(y)) : x + y));
  }
  case Type::F64: return bitsAs<uint64_t>(bitsAs<double>(old) + bitsAs<double>(b));
  case Type::F16: return halfResult<Half>(plan.op, old, b);
  case Type::BF16: return halfResult<Brain>(plan.op, old, b);
  case Type::F16x2: return pairResult<Half>(plan.op, old, b);
  case Type::BF16x2: return pairResult<Brain>(plan.op, old, b);
  case Type::S32: return uint32_t(integerResult<int32_t>(plan.op, old, b, c));
  case Type::S64: return integerResult<int64_t>(plan.op, old, b, c);
  case Type::B16: return integerResult<uint16_t>(plan.op, old, b, c);
  case Type::U32:
  case Type::B32: return integerResult<uint32_t>(plan.op, old, b, c);
  default: return integerResult<uint64_t>(plan.op, old, b, c);
  }
}

void updateLane(Warp &warp, const Instruction &i, const Plan &plan, unsigned lane, Access &access, Traffic &traffic) {
  unsigned size = sizeOf(plan.type);
  uint64_t address = addressOf(warp, i.in[0], plan.isWide, i.immediate, lane);
  Place place = access.resolve(plan.space, address, size * plan.count, lane);
  if (!place.isGlobal && !place.isShared)
    warp.fail(LaneMask(1) << lane, "atomic operations are for global and shared memory");
  access.check(place, size * plan.count, lane);
  strongRead(warp, lane, place, plan.order);
  strongWrite(warp, lane, place, plan.order);
  for (unsigned k = 0; k < plan.count; ++k) {
    uint64_t old = 0, c = plan.op == Op::Cas ? readBits(warp, i.in[2], size, lane) : 0;
    std::memcpy(&old, place.bytes() + k * size, size);
    uint64_t value = newValue(plan, place.isGlobal, old, readBits(warp, i.in[1 + k], size, lane), c);
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

static void checkCombination(Decoder &d, const Plan &plan) {
  bool isFloating = isFloat(plan.type), isBits = plan.type == Type::B16 || plan.type == Type::B32 || plan.type == Type::B64;
  bool isHalf = isFloating && plan.type != Type::F32 && plan.type != Type::F64;
  bool isFine = false;
  switch (plan.op) {
  case Op::Add: isFine = !isBits; break;
  case Op::Min:
  case Op::Max: isFine = !isBits && (!isFloating || isHalf); break;
  case Op::Inc:
  case Op::Dec: isFine = plan.type == Type::U32; break;
  case Op::Exch:
  case Op::Cas: isFine = isBits; break;
  default: isFine = isBits && plan.type != Type::B16;
  }
  if (!isFine)
    d.fail("type %s does not go with this operation", nameOf(plan.type));
}

bool fsdprt::emulate::decodeAtomic(Decoder &d) {
  Plan plan = {};
  plan.hasResult = d.modifiers.name() == "atom";
  plan.space = takeSpace(d.modifiers);
  plan.order = takeOrder(d.modifiers);
  if (plan.order == Order::Weak)
    plan.order = Order::Relaxed;
  bool hasHint = takeCaches(d.modifiers);
  int op = d.modifiers.takeOneOf({"add", "min", "max", "inc", "dec", "exch", "cas", "and", "or", "xor"});
  if (op < 0)
    d.fail("expected an operation such as .add in '%s'", std::string(d.statement->opcode).c_str());
  plan.op = static_cast<Op>(op);
  d.modifiers.take("noftz");
  plan.count = takeVector(d.modifiers);
  plan.type = d.typeOneOf({Type::B16, Type::B32, Type::B64, Type::U32, Type::U64, Type::S32, Type::S64, Type::F16, Type::F16x2,
                           Type::BF16, Type::BF16x2, Type::F32, Type::F64});
  checkCombination(d, plan);
  unsigned at = plan.hasResult, count = 2 + at + (plan.op == Op::Cas) + hasHint;
  d.operandCount(count, count);
  int64_t offset;
  std::vector<Slot> outs, ins{d.address(d.operand(at), plan.space, offset, plan.isWide)};
  auto values = Decoder::elements(d.operand(at + 1));
  if (values.size() != plan.count || (plan.hasResult && Decoder::elements(d.operand(0)).size() != plan.count))
    d.fail("expected %u registers", plan.count);
  for (const Operand *value : values)
    ins.push_back(d.source(*value, plan.type));
  if (plan.op == Op::Cas)
    ins.push_back(d.source(at + 2, plan.type));
  if (plan.hasResult)
    for (const Operand *to : Decoder::elements(d.operand(0)))
      outs.push_back(d.destination(*to, plan.type));
  Instruction &i = d.emit(atomic, outs, ins);
  i.immediate = offset;
  std::memcpy(&i.payload, &plan, sizeof plan);
  return true;
}
