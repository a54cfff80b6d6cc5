//===- BulkCopies.cpp - Copies of many bytes by the async proxy -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk,
// cp.reduce.async.bulk, cp.async.bulk.prefetch, cp.async.bulk.commit_group,
// cp.async.bulk.wait_group". AsyncProxy.h describes how the accesses of a copy are ordered with
// other accesses.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Lanes.h"
#include "emulator/memory/AsyncProxy.h"
#include "emulator/memory/MemoryModifiers.h"

using namespace fsdprt::emulate;

namespace {
struct Plan {
  AddressOperand to{Space::Shared}, from{Space::Shared}, barrier{Space::Shared};
  bool hasBarrier = false;
  Slot mask = 0; ///< slot of the operand ctaMask; 0 if there is none
  std::optional<Reduction> reduction;
};

void copyLane(Warp &warp, const Instruction &i, const Plan &plan, unsigned lane) {
  uint32_t size = warp.at<uint32_t>(i.in[0])[lane];
  if (!size || size % 16)
    warp.fail(LaneMask(1) << lane, "a copy of %u bytes, expected a multiple of 16", size);
  AsyncCopy copy(warp, lane);
  Place from = copy.read(plan.from.space, plan.from.at(warp, lane), size, 16);
  uint64_t to = plan.to.at(warp, lane), barrier = plan.barrier.at(warp, lane);
  auto writeTo = [&](uint64_t address) {
    Place place = copy.writeTo(plan.to.space, address, size, 16);
    copy.write(place, from.bytes(), size, plan.reduction);
    return place;
  };
  if (plan.mask) {
    for (uint32_t rank : multicastRanks(warp, lane, plan.mask))
      copy.complete(inBlock(barrier, rank), size, *writeTo(inBlock(to, rank)).storage);
    return;
  }
  Place place = writeTo(to);
  if (plan.hasBarrier)
    copy.complete(barrier, size, *place.storage);
  else
    copy.joinGroup();
}

Step copy(Warp &warp, const Instruction &i, LaneMask active) {
  for (LaneMask rest = active; rest; rest &= rest - 1)
    copyLane(warp, i, *static_cast<const Plan *>(i.plan), __builtin_ctz(rest));
  return Step::Next;
}

Step commit(Warp &warp, const Instruction &i, LaneMask active) {
  if (warp.bulk.empty())
    warp.bulk.resize(warpSize);
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    BulkGroups &groups = warp.bulk[__builtin_ctz(rest)];
    groups.closed.push_back(std::move(groups.open));
    groups.open.clear();
  }
  return Step::Next;
}

/// Executes cp.async.bulk.wait_group. `modifier` is true if the instruction has .read. An
/// instruction with .read waits only until the sources of the copies have been read.
Step waitForGroups(Warp &warp, const Instruction &i, LaneMask active) {
  if (warp.bulk.empty())
    return Step::Next;
  VectorClocks &clocks = warp.block.cluster.clocks;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    BulkGroups &groups = warp.bulk[lane];
    size_t ended = groups.closed.size() > i.payload ? groups.closed.size() - i.payload : 0;
    for (size_t group = i.modifier ? groups.readCount : 0; group < ended; ++group)
      for (const BulkGroups::Copy &copy : groups.closed[group])
        clocks.learn(warp.firstThread, LaneMask(1) << lane, copy.agent,
                     i.modifier ? copy.read : copy.done);
    groups.readCount = std::max(groups.readCount, ended);
    if (i.modifier)
      continue;
    groups.closed.erase(groups.closed.begin(), groups.closed.begin() + ended);
    groups.readCount -= ended;
  }
  return Step::Next;
}

Step nothing(Warp &warp, const Instruction &i, LaneMask active) { return Step::Next; }
} // namespace

/// Takes the operation and the type of cp.reduce.async.bulk from the modifiers.
static Reduction takeReduction(Decoder &d) {
  Combination op = takeCombination(d);
  d.modifiers.take("noftz");
  Type type = d.typeOneOf({Type::B32, Type::B64, Type::U32, Type::U64, Type::S32, Type::S64,
                           Type::F16, Type::BF16, Type::F32, Type::F64});
  checkCombination(d, op, type);
  return {op, type};
}

static void decodeCopy(Decoder &d) {
  bool isReduction = d.modifiers.take("reduce"), toGlobal = d.modifiers.take("bulk_group");
  Plan plan;
  plan.hasBarrier = d.modifiers.take("mbarrier::complete_tx::bytes");
  if (plan.hasBarrier == toGlobal)
    d.fail("expected .mbarrier::complete_tx::bytes or .bulk_group");
  bool global = d.modifiers.take("global");
  int shared = d.modifiers.takeOneOf({"shared::cta", "shared::cluster"});
  bool betweenBlocks = !global && d.modifiers.take(shared ? "shared::cta" : "shared::cluster");
  if (shared < 0 || (!global && !betweenBlocks) || (toGlobal && (!global || shared)))
    d.fail("expected two spaces, such as .shared::cluster.global");
  bool isMulticast = d.modifiers.take("multicast::cluster"), hasHint = takeCaches(d.modifiers);
  if (isMulticast && (!global || toGlobal))
    d.fail(".multicast::cluster is for copies from global memory");
  if (isReduction && global && !toGlobal)
    d.fail("cp.reduce is for what comes from shared memory");
  if (isReduction)
    plan.reduction = takeReduction(d);
  unsigned count = 3 + plan.hasBarrier + isMulticast + hasHint;
  d.operandCount(count, count);
  plan.to = {d, d.operand(0), toGlobal ? Space::Global : Space::Shared};
  plan.from = {d, d.operand(1), global && !toGlobal ? Space::Global : Space::Shared};
  std::vector<Slot> ins{d.source(2, Type::U32), plan.to.base, plan.from.base};
  if (plan.hasBarrier) {
    plan.barrier = {d, d.operand(3), Space::Shared};
    ins.push_back(plan.barrier.base);
  }
  if (isMulticast)
    ins.push_back(plan.mask = d.source(4, Type::B16));
  d.emit(copy, {}, ins, plan);
}

/// Decodes a prefetch into the L2 cache. The prefetch has no visible effect.
static void decodePrefetch(Decoder &d) {
  d.modifiers.take("L2");
  if (!d.modifiers.take("global"))
    d.fail("expected .global");
  bool hasHint = takeCaches(d.modifiers);
  d.operandCount(2 + hasHint, 2 + hasHint);
  d.emit(nothing, {},
         {AddressOperand(d, d.operand(0), Space::Global).base, d.source(1, Type::U32)});
}

bool fsdprt::emulate::decodeBulkCopy(Decoder &d) {
  d.modifiers.take("bulk");
  if (d.modifiers.has("tensor"))
    return decodeTensorCopy(d);
  if (d.modifiers.take("commit_group")) {
    d.operandCount(0, 0);
    d.emit(commit, {}, {});
  } else if (d.modifiers.take("wait_group")) {
    bool isRead = d.modifiers.take("read");
    d.operandCount(1, 1);
    uint64_t left = d.constant(d.operand(0), "a number of groups");
    Instruction &i = d.emit(waitForGroups, {}, {});
    i.payload = left, i.modifier = isRead;
  } else if (d.modifiers.take("prefetch")) {
    decodePrefetch(d);
  } else {
    decodeCopy(d);
  }
  return true;
}
