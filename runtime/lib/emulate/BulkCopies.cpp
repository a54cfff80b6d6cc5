//===- BulkCopies.cpp - Copies of many bytes by the async proxy -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk, cp.async.bulk.commit_group, cp.async.bulk.wait_group".
// A copy acts at once, by an agent of its own, whose work those know who see the end of its mbarrier's phase, or wait for its
// group. It is in the async proxy: what ordinary stores wrote, it sees behind fence.proxy.async.
//
//===----------------------------------------------------------------------===//

#include "emulate/Lanes.h"
#include "emulate/Mbarriers.h"
#include "emulate/MemoryModifiers.h"

using namespace fsdprt::emulate;

namespace {
struct Plan {
  Space to, from;
  bool isWideTo, isWideFrom, isWideBarrier, hasBarrier;
};

/// Offsets of the three addresses are constants behind the slots: small enough for 32 bits each.
struct Offsets {
  int32_t to, from;
};

uint32_t nextAgent(Cluster &cluster) { return cluster.agentOf(cluster.bulkCopies++ % (cluster.clocks.threadCount() / 2)); }

void copyLane(Warp &warp, const Instruction &i, const Plan &plan, const Offsets &offsets, unsigned lane) {
  Cluster &cluster = warp.block.cluster;
  uint32_t size = warp.at<uint32_t>(i.in[2])[lane], agent = nextAgent(cluster);
  if (!size || size % 16)
    warp.fail(LaneMask(1) << lane, "a copy of %u bytes, expected a multiple of 16", size);
  cluster.clocks.fork(warp.thread(lane), agent);
  Access read(warp, Touch::Reads), write(warp, Touch::Writes);
  read.isAsync = write.isAsync = true;
  Place from = read.resolve(plan.from, addressOf(warp, i.in[1], plan.isWideFrom, offsets.from, lane), size, lane, 16);
  Place to = write.resolve(plan.to, addressOf(warp, i.in[0], plan.isWideTo, offsets.to, lane), size, lane, 16);
  read.check(from, size, lane, agent);
  write.check(to, size, lane, agent, from.bytes());
  std::memcpy(to.bytes(), from.bytes(), size);
  Counters &counters = cluster.grid.counters;
  (from.isGlobal ? counters.globalLoadBytes : counters.sharedLoadBytes) += size;
  (to.isGlobal ? counters.globalStoreBytes : counters.sharedStoreBytes) += size;
  if (plan.hasBarrier) {
    MbarrierRef barrier(warp, lane, Space::Shared, addressOf(warp, i.in[3], plan.isWideBarrier, i.immediate, lane));
    barrier.release(agent);
    barrier.complete(size);
    barrier.finish();
    return;
  }
  if (warp.bulk.empty())
    warp.bulk.resize(warpSize);
  warp.bulk[lane].open.push_back({agent, cluster.clocks.finish(agent)});
}

Step copy(Warp &warp, const Instruction &i, LaneMask active) {
  Plan plan;
  Offsets offsets;
  uint32_t packed = i.modifier | uint32_t(i.modifier2) << 8;
  plan = {static_cast<Space>(packed & 7), static_cast<Space>(packed >> 3 & 7), bool(packed & 64), bool(packed & 128), bool(packed & 256), bool(packed & 512)};
  std::memcpy(&offsets, &i.payload, sizeof offsets);
  for (LaneMask rest = active; rest; rest &= rest - 1)
    copyLane(warp, i, plan, offsets, __builtin_ctz(rest));
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

Step waitForGroups(Warp &warp, const Instruction &i, LaneMask active) {
  if (warp.bulk.empty())
    return Step::Next;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    for (auto &closed = warp.bulk[lane].closed; closed.size() > i.payload; closed.pop_front())
      for (auto [agent, time] : closed.front())
        warp.block.cluster.clocks.learn(warp.thread(lane), agent, time);
  }
  return Step::Next;
}
} // namespace

static int32_t smallOffset(Decoder &d, int64_t offset) {
  if (offset != int32_t(offset))
    d.fail("expected less than 2 GiB to add to an address");
  return offset;
}

static void decodeCopy(Decoder &d) {
  bool toGlobal = d.modifiers.take("bulk_group");
  Plan plan = {};
  plan.hasBarrier = d.modifiers.take("mbarrier::complete_tx::bytes");
  if (plan.hasBarrier == toGlobal)
    d.fail("expected .mbarrier::complete_tx::bytes or .bulk_group");
  int global = d.modifiers.take("global"), shared = d.modifiers.takeOneOf({"shared::cta", "shared::cluster"});
  bool betweenBlocks = !global && d.modifiers.take("shared::cta");
  if (shared < 0 || (!global && !betweenBlocks && !d.modifiers.take("shared::cluster")))
    d.fail("expected two spaces");
  bool hasHint = takeCaches(d.modifiers);
  plan.to = toGlobal ? Space::Global : Space::Shared;
  plan.from = toGlobal || !global ? Space::Shared : Space::Global;
  d.operandCount(3 + plan.hasBarrier + hasHint, 3 + plan.hasBarrier + hasHint);
  int64_t to, from, barrier = 0;
  std::vector<Slot> ins{d.address(d.operand(0), plan.to, to, plan.isWideTo), d.address(d.operand(1), plan.from, from, plan.isWideFrom),
                        d.source(2, Type::U32)};
  Space own = Space::Shared;
  if (plan.hasBarrier)
    ins.push_back(d.address(d.operand(3), own, barrier, plan.isWideBarrier));
  Offsets offsets{smallOffset(d, to), smallOffset(d, from)};
  Instruction &i = d.emit(copy, {}, ins);
  i.immediate = barrier;
  uint32_t packed = static_cast<uint32_t>(plan.to) | static_cast<uint32_t>(plan.from) << 3 | plan.isWideTo << 6 | plan.isWideFrom << 7 |
                    plan.isWideBarrier << 8 | plan.hasBarrier << 9;
  i.modifier = packed, i.modifier2 = packed >> 8;
  std::memcpy(&i.payload, &offsets, sizeof offsets);
}

bool fsdprt::emulate::decodeBulkCopy(Decoder &d) {
  d.modifiers.take("bulk");
  if (d.modifiers.take("commit_group")) {
    d.operandCount(0, 0);
    d.emit(commit, {}, {});
  } else if (d.modifiers.take("wait_group")) {
    d.modifiers.take("read");
    d.operandCount(1, 1);
    uint64_t left = d.constant(d.operand(0), "a number of groups");
    d.emit(waitForGroups, {}, {}).payload = left;
  } else if (d.modifiers.has("tensor") || d.modifiers.has("prefetch")) {
    return false;
  } else {
    decodeCopy(d);
  }
  return true;
}
