//===- Mbarriers.cpp - Barriers in shared memory ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier.init,
// inval, arrive, arrive_drop, expect_tx, complete_tx, test_wait, try_wait, pending_count,
// cp.async.mbarrier.arrive". In the emulator, try_wait always waits until the phase ends. If the
// phase never ends, the emulator reports a deadlock.
//
//===----------------------------------------------------------------------===//

#include "emulator/memory/Mbarriers.h"
#include "emulator/machine/Decoder.h"
#include "emulator/machine/Lanes.h"
#include "emulator/memory/MemoryModifiers.h"

using namespace fsdprt::emulate;

static constexpr uint32_t mostArrivals = (1 << 20) - 1;

uint64_t Mbarrier::bits() const {
  return uint64_t(phase) << 63 | uint64_t(pending) << 42 | uint64_t(count) << 21 |
         (uint64_t(bytes) & 0x1fffff);
}

MbarrierRef::MbarrierRef(Warp &warp, unsigned lane, uint32_t thread, Space space, uint64_t address)
    : warp(&warp), lane(lane) {
  Access access(warp, Touch::Updates);
  access.isStrong = true;
  Place place = access.resolve(space, address, 8, lane);
  owner = nullptr;
  for (auto &block : warp.block.cluster.blocks)
    if (&block->shared == place.storage)
      owner = block.get();
  auto known =
      owner ? owner->mbarriers.find(place.offset) : std::map<uint64_t, Mbarrier>::iterator();
  if (!owner || known == owner->mbarriers.end())
    warp.fail(LaneMask(1) << lane,
              "expected an mbarrier at %s, found none; initialise it by mbarrier.init",
              describe(place).c_str());
  access.check(place, 8, lane, thread);
  offset = place.offset;
  barrier = &known->second;
  bytes = place.bytes();
  uint64_t found;
  std::memcpy(&found, bytes, 8);
  if (found != barrier->bits())
    warp.fail(LaneMask(1) << lane, "the mbarrier at %s was overwritten", describe(place).c_str());
}

void MbarrierRef::store() {
  uint64_t bits = barrier->bits();
  std::memcpy(bytes, &bits, 8);
}

void MbarrierRef::arrive(uint32_t count, bool drops) {
  if (!count || count > barrier->pending)
    warp->fail(LaneMask(1) << lane, "%u arrivals, but the mbarrier's phase waits for %u more of %u",
               count, barrier->pending, barrier->count);
  barrier->pending -= count;
  if (drops)
    barrier->count -= count;
  store();
}

void MbarrierRef::expect(int64_t more) {
  barrier->bytes += more;
  if (barrier->bytes > mostArrivals || barrier->bytes < -int64_t(mostArrivals))
    warp->fail(LaneMask(1) << lane,
               "%lld bytes are announced to the mbarrier, but 2^20 - 1 at most",
               static_cast<long long>(barrier->bytes));
  store();
}

void MbarrierRef::release(uint32_t thread) {
  warp->block.cluster.clocks.release(thread / warpSize * warpSize, LaneMask(1) << thread % warpSize,
                                     barrier->arriving);
}

void MbarrierRef::checkVisible(uint32_t agent) const {
  if (!warp->block.cluster.grid.launch.checks.races || barrier->isFenced ||
      warp->block.cluster.clocks.isProxied(barrier->maker, barrier->made, agent))
    return;
  warp->fail(
      LaneMask(1) << lane,
      "the async proxy does not see the mbarrier at shared memory + 0x%llx, initialised at line "
      "%u, with neither fence.mbarrier_init nor fence.proxy.async in between",
      static_cast<unsigned long long>(offset), warp->program.code[barrier->instruction].at.line);
}

void MbarrierRef::finish() {
  if (barrier->pending || barrier->bytes)
    return;
  barrier->phase ^= 1;
  barrier->pending = barrier->count;
  barrier->ended = std::move(barrier->arriving);
  barrier->arriving.clear();
  store();
  for (auto &each : warp->block.cluster.blocks)
    for (auto &other : each->warps)
      for (Split &split : other->splits)
        if (split.waiting.kind == Waiting::Phase)
          split.waiting = {};
}

void MbarrierRef::remove() { owner->mbarriers.erase(offset); }

void MbarrierRef::acquire(LaneMask lanes) {
  warp->block.cluster.clocks.acquire(warp->firstThread, lanes, barrier->ended);
}

namespace {
enum class Op : uint8_t { Arrive, Drop, Expect, Complete, CopiesArrive };

struct Plan {
  Space space;
  Op op;
  bool isWide, announces, isRelaxed, keepsCount, hasCount;
};

Plan planOf(const Instruction &i) {
  Plan plan;
  std::memcpy(&plan, &i.payload, sizeof plan);
  return plan;
}

Step initialise(Warp &warp, const Instruction &i, LaneMask active) {
  Plan plan = planOf(i);
  Access access(warp, Touch::Writes);
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    uint32_t count = warp.at<uint32_t>(i.in[1])[lane];
    if (!count || count > mostArrivals)
      warp.fail(LaneMask(1) << lane, "an mbarrier for %u arrivals, expected 1 to %u", count,
                mostArrivals);
    Place place = access.resolve(plan.space,
                                 addressOf(warp, i.in[0], plan.isWide, i.immediate, lane), 8, lane);
    if (place.storage != &warp.block.shared)
      warp.fail(LaneMask(1) << lane, "mbarrier.init is for the block's own shared memory");
    access.check(place, 8, lane);
    Mbarrier &barrier = warp.block.mbarriers[place.offset] = {};
    barrier.count = barrier.pending = count;
    barrier.maker = warp.thread(lane),
    barrier.made = warp.block.cluster.clocks.timeOf(barrier.maker);
    barrier.instruction = warp.currentPc();
    uint64_t bits = barrier.bits();
    std::memcpy(place.bytes(), &bits, 8);
  }
  return Step::Next;
}

Step invalidate(Warp &warp, const Instruction &i, LaneMask active) {
  Plan plan = planOf(i);
  for (LaneMask rest = active; rest; rest &= rest - 1)
    MbarrierRef(warp, __builtin_ctz(rest), plan.space,
                addressOf(warp, i.in[0], plan.isWide, i.immediate, __builtin_ctz(rest)))
        .remove();
  return Step::Next;
}

/// Executes an instruction for one lane. arrive.expect_tx first announces its bytes and then
/// arrives, so that the phase does not end before the bytes are announced.
void actOnLane(Warp &warp, const Instruction &i, const Plan &plan, unsigned lane) {
  MbarrierRef barrier(warp, lane, plan.space,
                      addressOf(warp, i.in[0], plan.isWide, i.immediate, lane));
  uint64_t before = barrier.state();
  uint32_t value = i.inCount > 1 ? warp.at<uint32_t>(i.in[1])[lane] : 1;
  if (plan.op == Op::Complete)
    barrier.complete(value);
  else if (plan.op == Op::Expect || plan.announces)
    barrier.expect(value);
  if (plan.op == Op::Arrive || plan.op == Op::Drop) {
    if (!plan.isRelaxed)
      barrier.release(warp.thread(lane));
    barrier.arrive(plan.announces ? 1 : value, plan.op == Op::Drop);
  } else if (plan.op == Op::CopiesArrive) {
    // The agent of the thread arrives now, because the emulator has already executed the thread's
    // copies. Without .noinc, the instruction also increments the number of expected arrivals, so
    // that the number of missing arrivals stays the same.
    barrier.release(warp.block.cluster.agentOf(warp.thread(lane)));
    if (plan.keepsCount)
      barrier.arrive(1, false);
  }
  barrier.finish();
  if (i.outCount)
    warp.at<uint64_t>(i.out[0])[lane] = before;
}

Step act(Warp &warp, const Instruction &i, LaneMask active) {
  Plan plan = planOf(i);
  for (LaneMask rest = active; rest; rest &= rest - 1)
    actOnLane(warp, i, plan, __builtin_ctz(rest));
  return Step::Next;
}

/// Collects consecutive lanes that test the same mbarrier, so that a single call acquires the
/// releases of this mbarrier for all of these lanes. Usually, all lanes test the same mbarrier.
class Acquired {
public:
  void add(const MbarrierRef &barrier, unsigned lane) {
    if (last && last->address() != barrier.address())
      finish();
    last = barrier;
    lanes |= LaneMask(1) << lane;
  }
  void finish() {
    if (last)
      last->acquire(lanes);
    last.reset(), lanes = 0;
  }

private:
  std::optional<MbarrierRef> last;
  LaneMask lanes = 0;
};

/// Executes test_wait and try_wait. Bit 0 of `modifier` is set if the instruction is try_wait,
/// which waits. Bit 1 is set if the operand is a parity, and not a state.
Step test(Warp &warp, const Instruction &i, LaneMask active) {
  Plan plan = planOf(i);
  LaneMask ended = 0;
  Acquired acquired;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    uint32_t parity =
        i.modifier & 2 ? warp.at<uint32_t>(i.in[1])[lane] : warp.at<uint64_t>(i.in[1])[lane] >> 63;
    if (parity > 1)
      warp.fail(LaneMask(1) << lane, "a parity of %u, expected 0 or 1", parity);
    MbarrierRef barrier(warp, lane, plan.space,
                        addressOf(warp, i.in[0], plan.isWide, i.immediate, lane));
    if (barrier.hasEnded(parity)) {
      ended |= LaneMask(1) << lane;
      if (!plan.isRelaxed)
        acquired.add(barrier, lane);
    } else if (i.modifier & 1) {
      acquired.finish();
      warp.wait(Waiting::Phase, i, active);
      warp.splits[warp.split].waiting.address = barrier.address();
      warp.splits[warp.split].waiting.parity = parity;
      return Step::Retries;
    }
  }
  acquired.finish();
  keepBits(warp.predicate(i.out[0]), ended, active);
  return Step::Next;
}

Step pendingCount(Warp &warp, const Instruction &i, LaneMask active) {
  for (LaneMask rest = active; rest; rest &= rest - 1)
    warp.at<uint32_t>(i.out[0])[__builtin_ctz(rest)] =
        warp.at<uint64_t>(i.in[0])[__builtin_ctz(rest)] >> 42 & 0x1fffff;
  return Step::Next;
}
} // namespace

static void finishInstruction(Decoder &d, Instruction &i, const Plan &plan, int64_t offset) {
  i.immediate = offset;
  std::memcpy(&i.payload, &plan, sizeof plan);
}

static void decodeTest(Decoder &d, Plan plan, bool waits) {
  bool isParity = d.modifiers.take("parity");
  d.operandCount(3, waits ? 4 : 3);
  int64_t offset;
  std::vector<Slot> ins{d.address(d.operand(1), plan.space, offset, plan.isWide),
                        d.source(2, isParity ? Type::U32 : Type::B64)};
  Instruction &i = d.emit(test, {d.destination(0, Type::Pred)}, ins);
  i.modifier = waits | isParity << 1;
  finishInstruction(d, i, plan, offset);
}

/// Decodes "arrive{.expect_tx} {state,} [address] {, count}", where braces contain optional parts.
static void decodeArrival(Decoder &d, Plan plan) {
  plan.announces = d.modifiers.take("expect_tx");
  if (d.modifiers.take("noComplete"))
    d.fail(".noComplete is not supported");
  bool hasState = d.operand(0).kind != OperandKind::Address;
  d.operandCount(1 + hasState + plan.announces, 2 + hasState);
  int64_t offset;
  std::vector<Slot> outs, ins{d.address(d.operand(hasState), plan.space, offset, plan.isWide)};
  if (d.operandCount() > 1u + hasState)
    ins.push_back(d.source(1 + hasState, Type::U32));
  if (hasState && d.operand(0).kind != OperandKind::Sink)
    outs.push_back(d.destination(0, Type::B64));
  Instruction &i = d.emit(act, outs, ins);
  finishInstruction(d, i, plan, offset);
}

static void decodeBytes(Decoder &d, const Plan &given) {
  Plan plan = given;
  d.operandCount(2, 2);
  int64_t offset;
  std::vector<Slot> ins{d.address(d.operand(0), plan.space, offset, plan.isWide),
                        d.source(1, Type::U32)};
  finishInstruction(d, d.emit(act, {}, ins), plan, offset);
}

bool fsdprt::emulate::decodeCopiesArrive(Decoder &d) {
  Plan plan = {};
  d.modifiers.take("mbarrier");
  if (!d.modifiers.take("arrive"))
    d.fail("expected cp.async.mbarrier.arrive");
  plan.op = Op::CopiesArrive;
  plan.keepsCount = d.modifiers.take("noinc");
  plan.space = takeSpace(d.modifiers);
  d.typeOneOf({Type::B64});
  d.operandCount(1, 1);
  int64_t offset;
  std::vector<Slot> ins{d.address(d.operand(0), plan.space, offset, plan.isWide)};
  finishInstruction(d, d.emit(act, {}, ins), plan, offset);
  return true;
}

bool fsdprt::emulate::decodeMbarrier(Decoder &d) {
  int what = d.modifiers.takeOneOf({"init", "inval", "arrive", "arrive_drop", "expect_tx",
                                    "complete_tx", "test_wait", "try_wait", "pending_count"});
  if (what < 0)
    d.fail("expected an operation such as .init in '%s'", std::string(d.statement->opcode).c_str());
  Plan plan = {};
  plan.space = takeSpace(d.modifiers);
  Order order = takeOrder(d.modifiers);
  plan.isRelaxed = order == Order::Relaxed;
  d.typeOneOf({Type::B64});
  int64_t offset;
  switch (what) {
  case 0:
  case 1: {
    d.operandCount(what ? 1 : 2, what ? 1 : 2);
    std::vector<Slot> ins{d.address(d.operand(0), plan.space, offset, plan.isWide)};
    if (!what)
      ins.push_back(d.source(1, Type::U32));
    finishInstruction(d, d.emit(what ? invalidate : initialise, {}, ins), plan, offset);
    break;
  }
  case 2:
  case 3:
    plan.op = what == 2 ? Op::Arrive : Op::Drop;
    decodeArrival(d, plan);
    break;
  case 4:
  case 5:
    plan.op = what == 4 ? Op::Expect : Op::Complete;
    decodeBytes(d, plan);
    break;
  case 6:
  case 7:
    decodeTest(d, plan, what == 7);
    break;
  default:
    d.operandCount(2, 2);
    d.emit(pendingCount, {d.destination(0, Type::U32)}, {d.source(1, Type::B64)});
  }
  return true;
}
