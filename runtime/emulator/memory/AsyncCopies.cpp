//===- AsyncCopies.cpp - cp.async -------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Data Movement and Conversion Instructions: cp.async, cp.async.commit_group,
// cp.async.wait_group, cp.async.wait_all". The agent of the thread copies the bytes immediately.
// The copy is ordered before the accesses that the thread makes after it has waited for the group
// of the copy. The copy is also ordered before the accesses of other threads that acquire a release
// which this thread executes after its wait. An access that is not ordered with the copy races with
// the copy.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Lanes.h"
#include "emulator/memory/MemoryModifiers.h"

using namespace fsdprt::emulate;

namespace {
struct Plan {
  bool isWideTo, isWideFrom;
  uint8_t size;
  bool hasSize; ///< true if an operand gives the number of bytes to read; other bytes become 0
  int32_t fromOffset;
};

AsyncCopies &copiesOf(Warp &warp, unsigned lane) {
  if (warp.copies.empty())
    warp.copies.resize(warpSize);
  return warp.copies[lane];
}

void copyLane(Warp &warp, const Instruction &i, const Plan &plan, unsigned lane, Traffic &loads,
              Traffic &stores) {
  VectorClocks &clocks = warp.block.cluster.clocks;
  uint32_t thread = warp.thread(lane), agent = warp.block.cluster.agentOf(thread);
  clocks.fork(thread, agent);
  uint8_t data[16] = {};
  unsigned bytes = plan.hasSize ? warp.at<uint32_t>(i.in[2])[lane] : plan.size;
  if (bytes > plan.size)
    warp.fail(LaneMask(1) << lane, "reads %u bytes for a copy of %u", bytes, plan.size);
  uint64_t from = addressOf(warp, i.in[1], plan.isWideFrom, plan.fromOffset, lane);
  uint64_t to = addressOf(warp, i.in[0], plan.isWideTo, i.immediate, lane);
  if (bytes) {
    Access read(warp, Touch::Reads);
    Place place = read.resolve(Space::Global, from, bytes, lane, plan.size);
    read.check(place, bytes, lane, agent);
    std::memcpy(data, place.bytes(), bytes);
    loads.add(place, from, plan.size);
  }
  Access write(warp, Touch::Writes);
  Place place = write.resolve(Space::Shared, to, plan.size, lane);
  write.check(place, plan.size, lane, agent, data);
  std::memcpy(place.bytes(), data, plan.size);
  stores.add(place, to, plan.size);
}

Step copy(Warp &warp, const Instruction &i, LaneMask active) {
  Plan plan;
  std::memcpy(&plan, &i.payload, sizeof plan);
  Traffic loads, stores;
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (active >> lane & 1)
      copyLane(warp, i, plan, lane, loads, stores);
  Counters &counters = warp.block.cluster.grid.counters;
  loads.count(counters, false);
  stores.count(counters, true);
  return Step::Next;
}

void commitLane(Warp &warp, unsigned lane) {
  Cluster &cluster = warp.block.cluster;
  copiesOf(warp, lane).groups.push_back(cluster.clocks.finish(cluster.agentOf(warp.thread(lane))));
}

/// Waits until at most `left` groups of copies of a lane are in flight.
void waitLane(Warp &warp, unsigned lane, uint64_t left) {
  Cluster &cluster = warp.block.cluster;
  AsyncCopies &copies = copiesOf(warp, lane);
  Time last = 0;
  for (; copies.groups.size() > left; copies.groups.pop_front())
    last = copies.groups.front();
  if (last)
    cluster.clocks.learn(warp.firstThread, LaneMask(1) << lane, cluster.agentOf(warp.thread(lane)),
                         last);
}

Step commit(Warp &warp, const Instruction &i, LaneMask active) {
  for (LaneMask rest = active; rest; rest &= rest - 1)
    commitLane(warp, __builtin_ctz(rest));
  return Step::Next;
}

Step waitForGroups(Warp &warp, const Instruction &i, LaneMask active) {
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    if (i.modifier)
      commitLane(warp, __builtin_ctz(rest));
    waitLane(warp, __builtin_ctz(rest), i.payload);
  }
  return Step::Next;
}
} // namespace

static void decodeCopy(Decoder &d) {
  bool isWhole = d.modifiers.take("cg");
  if (!isWhole && !d.modifiers.take("ca"))
    d.fail("expected .ca or .cg");
  Plan plan = {};
  if (takeSpace(d.modifiers) != Space::Global || takeSpace(d.modifiers) != Space::Shared)
    d.fail("expected .shared.global");
  bool hasHint = takeCaches(d.modifiers);
  d.operandCount(3 + hasHint, 4 + hasHint);
  plan.hasSize = d.operandCount() == 4u + hasHint;
  uint64_t size = d.constant(d.operand(2), "a number of bytes");
  if (size != 16 && (isWhole || (size != 4 && size != 8)))
    d.fail("expected a copy of %s bytes", isWhole ? "16" : "4, 8 or 16");
  plan.size = size;
  Space shared = Space::Shared, global = Space::Global;
  int64_t to, from;
  std::vector<Slot> ins{d.address(d.operand(0), shared, to, plan.isWideTo),
                        d.address(d.operand(1), global, from, plan.isWideFrom)};
  plan.fromOffset = from;
  if (plan.fromOffset != from)
    d.fail("expected less than 2 GiB to add to an address");
  if (plan.hasSize)
    ins.push_back(d.source(3, Type::U32));
  Instruction &i = d.emit(copy, {}, ins);
  i.immediate = to;
  std::memcpy(&i.payload, &plan, sizeof plan);
}

bool fsdprt::emulate::decodeAsyncCopy(Decoder &d) {
  if (!d.modifiers.take("async"))
    return false;
  if (d.modifiers.has("bulk"))
    return decodeBulkCopy(d);
  if (d.modifiers.has("mbarrier"))
    return decodeCopiesArrive(d);
  if (d.modifiers.take("commit_group")) {
    d.operandCount(0, 0);
    d.emit(commit, {}, {});
  } else if (d.modifiers.take("wait_group")) {
    d.operandCount(1, 1);
    uint64_t left = d.constant(d.operand(0), "a number of groups");
    d.emit(waitForGroups, {}, {}).payload = left;
  } else if (d.modifiers.take("wait_all")) {
    d.operandCount(0, 0);
    d.emit(waitForGroups, {}, {}).modifier = 1;
  } else {
    decodeCopy(d);
  }
  return true;
}
