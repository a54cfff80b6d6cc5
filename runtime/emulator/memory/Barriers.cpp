//===- Barriers.cpp - Barriers and fences -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Parallel Synchronization and Communication Instructions: barrier{.cta},
// bar.warp.sync, barrier.cluster, membar, fence" and "Miscellaneous Instructions: nanosleep,
// setmaxnreg, trap, brkpt, pmevent". A barrier instruction without a number of threads waits for
// all threads of the block that have not exited.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Decoder.h"
#include "emulator/machine/Lanes.h"
#include "emulator/machine/Synchronise.h"

using namespace fsdprt::emulate;

namespace {
enum : uint8_t { IsAligned = 1, Arrives = 2, HasCount = 4 };

/// Returns the value of a register. Fails if the lanes have different values.
uint32_t uniform(Warp &warp, Slot slot, LaneMask active, const char *what) {
  const uint32_t *values = warp.at<uint32_t>(slot);
  uint32_t first = values[__builtin_ctz(active)];
  for (LaneMask rest = active; rest; rest &= rest - 1)
    if (values[__builtin_ctz(rest)] != first)
      warp.fail(active, "lanes have different %s", what);
  return first;
}

uint32_t expectedThreads(Warp &warp, const Instruction &i, LaneMask active) {
  uint32_t count = uniform(warp, i.in[1], active, "numbers of threads");
  if (!count || count % warpSize)
    warp.fail(active, "a barrier for %u threads, expected a multiple of %u", count, warpSize);
  uint32_t most = warp.block.warps.size() * warpSize;
  if (count > most)
    warp.fail(active, "a barrier for %u threads in a block of %u", count, most);
  return count;
}

void arriveAt(Warp &warp, const Instruction &i, LaneMask active, NamedBarrier &barrier,
              unsigned number) {
  bool hasCount = i.modifier & HasCount;
  uint32_t expected = hasCount ? expectedThreads(warp, i, active) : 0;
  if (barrier.arrived && (barrier.isAll == hasCount || barrier.expected != expected)) {
    std::string others =
        barrier.isAll ? "all threads" : fsdprt::format("%u threads", barrier.expected);
    warp.fail(active, "barrier %u is for %s here, but for %s where others wait", number,
              hasCount ? fsdprt::format("%u threads", expected).c_str() : "all threads",
              others.c_str());
  }
  barrier.isAll = !hasCount;
  barrier.expected = expected;
  barrier.arrived += i.modifier & IsAligned && hasCount ? warpSize : __builtin_popcount(active);
  if (hasCount && barrier.arrived > expected)
    warp.fail(active, "barrier %u is for %u threads, but this is number %u", number, expected,
              barrier.arrived);
  warp.block.cluster.clocks.release(warp.firstThread, active, barrier.released);
}

Step blockBarrier(Warp &warp, const Instruction &i, LaneMask active) {
  uint32_t number = uniform(warp, i.in[0], active, "barriers");
  if (number > 15)
    warp.fail(active, "barrier %u, expected 0 to 15", number);
  LaneMask elsewhere = warp.live & ~active;
  if (i.modifier & IsAligned && elsewhere)
    warp.fail(active, "expected all lanes of the warp to arrive together, but %s %s elsewhere",
              warp.nameOfLanes(elsewhere).c_str(), elsewhere & (elsewhere - 1) ? "are" : "is");
  NamedBarrier &barrier = warp.block.barriers[number];
  ++warp.block.cluster.grid.counters.barriers;
  arriveAt(warp, i, active, barrier, number);
  if (i.modifier2) {
    barrier.reduction = i.modifier2;
    LaneMask holds = warp.predicate(i.in[i.inCount - 1]);
    barrier.count += __builtin_popcount(active & holds);
  }
  if (!(i.modifier & Arrives)) {
    warp.wait(Waiting::Barrier, i, active);
    warp.splits[warp.split].waiting.barrier = number;
  }
  warp.block.completeIfAllCame(number);
  return warp.splits[warp.split].waiting.kind == Waiting::Nothing ? Step::Next : Step::Waits;
}

Step warpBarrier(Warp &warp, const Instruction &i, LaneMask active) {
  LaneMask mask = uniform(warp, i.in[0], active, "masks");
  if (active & ~mask)
    warp.fail(active & ~mask, "the mask 0x%08x does not name the lane itself", mask);
  warp.wait(Waiting::WarpBarrier, i, active);
  warp.splits[warp.split].waiting.mask = mask;
  warp.releaseWarpBarriers();
  return warp.splits[warp.split].waiting.kind == Waiting::Nothing ? Step::Next : Step::Waits;
}

Step clusterArrive(Warp &warp, const Instruction &i, LaneMask active) {
  Cluster &cluster = warp.block.cluster;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    if (!(active >> lane & 1))
      continue;
    if (warp.clusterPhase[lane])
      warp.fail(LaneMask(1) << lane, "arrives again without barrier.cluster.wait");
    warp.clusterPhase[lane] = cluster.phase + 1;
  }
  // With .relaxed, only lanes that have executed a fence release their accesses.
  if (LaneMask released = i.modifier ? active & warp.fenced : active)
    cluster.clocks.release(warp.firstThread, released, cluster.arriving);
  cluster.arrived += __builtin_popcount(active);
  cluster.completeIfAllCame();
  return Step::Next;
}

Step clusterWait(Warp &warp, const Instruction &i, LaneMask active) {
  Cluster &cluster = warp.block.cluster;
  bool hasCome = true;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    if (!(active >> lane & 1))
      continue;
    if (!warp.clusterPhase[lane])
      warp.fail(LaneMask(1) << lane, "waits without barrier.cluster.arrive");
    hasCome &= warp.clusterPhase[lane] <= cluster.phase;
    warp.clusterPhase[lane] = 0;
  }
  if (!hasCome)
    return warp.wait(Waiting::ClusterBarrier, i, active);
  cluster.clocks.acquire(warp.firstThread, active, cluster.released);
  return Step::Next;
}

Step memoryFence(Warp &warp, const Instruction &i, LaneMask active) {
  fence(warp, active);
  return Step::Next;
}

Step proxyFence(Warp &warp, const Instruction &i, LaneMask active) {
  warp.block.cluster.clocks.fenceProxy(warp.firstThread, active);
  return Step::Next;
}

/// Executes fence.mbarrier_init (PTX ISA, "membar, fence"). After the fence, the async proxy sees
/// the mbarriers that the active lanes have initialised.
Step mbarrierFence(Warp &warp, const Instruction &i, LaneMask active) {
  for (auto &[offset, barrier] : warp.block.mbarriers)
    barrier.isFenced |= barrier.maker / warpSize * warpSize == warp.firstThread &&
                        (active >> barrier.maker % warpSize & 1);
  return memoryFence(warp, i, active);
}

Step nothing(Warp &warp, const Instruction &i, LaneMask active) { return Step::Next; }

Step trapped(Warp &warp, const Instruction &i, LaneMask active) {
  warp.fail(active, "the program ends itself");
}
} // namespace

static void decodeClusterBarrier(Decoder &d) {
  int what = d.modifiers.takeOneOf({"arrive", "wait"});
  bool isRelaxed = d.modifiers.take("relaxed");
  d.modifiers.takeOneOf({"release", "acquire"});
  d.modifiers.take("aligned");
  if (what < 0)
    d.fail("expected .arrive or .wait");
  d.operandCount(0, 0);
  d.emit(what ? clusterWait : clusterArrive, {}, {}).modifier = isRelaxed;
}

static void decodeBlockBarrier(Decoder &d) {
  bool isShort = d.modifiers.name() == "bar", reduces = false;
  d.modifiers.take("cta");
  int what = d.modifiers.takeOneOf({"sync", "arrive", "red"});
  if (what < 0)
    d.fail("expected .sync, .arrive or .red");
  reduces = what == 2;
  uint8_t how =
              (isShort || d.modifiers.take("aligned") ? IsAligned : 0) | (what == 1 ? Arrives : 0),
          reduction = 0;
  std::vector<Slot> outs, ins;
  unsigned first = reduces, most = first + 2 + reduces;
  if (reduces) {
    int op = d.modifiers.takeOneOf({"popc", "and", "or"});
    if (op < 0)
      d.fail("expected .popc, .and or .or");
    reduction = "pao"[op];
    d.typeOneOf({op ? Type::Pred : Type::U32});
    outs.push_back(d.destination(0, op ? Type::Pred : Type::U32));
  }
  d.operandCount(first + 1 + reduces + (what == 1), most);
  bool hasCount = d.operandCount() == most;
  ins.push_back(d.source(first, Type::U32));
  if (hasCount)
    ins.push_back(d.source(first + 1, Type::U32));
  if (reduces)
    ins.push_back(d.predicate(d.operand(d.operandCount() - 1)));
  Instruction &i = d.emit(blockBarrier, outs, ins);
  i.modifier = how | (hasCount ? HasCount : 0);
  i.modifier2 = reduction;
}

/// Decodes fences of memory, of proxies, and of mbarrier initialisation (PTX ISA, "membar, fence").
static void decodeFence(Decoder &d) {
  bool isAsyncProxy = false, isOtherProxy = false, isInit = d.modifiers.take("mbarrier_init");
  if (d.modifiers.take("proxy")) {
    isAsyncProxy = d.modifiers.takeOneOf({"async", "async::generic"}) >= 0;
    isOtherProxy = !isAsyncProxy && d.modifiers.takeOneOf({"alias", "tensormap::generic"}) >= 0;
    if (!isAsyncProxy && !isOtherProxy)
      d.fail("expected a proxy such as .async");
    d.modifiers.takeOneOf({"global", "shared::cta", "shared::cluster"});
    d.modifiers.take("sync_restrict::shared::cluster");
    d.modifiers.take("sync_restrict::shared::cta");
  }
  d.modifiers.takeOneOf({"sc", "acq_rel", "acquire", "release"});
  if (d.modifiers.takeOneOf({"cta", "cluster", "gpu", "gl", "sys"}) < 0 && !isAsyncProxy &&
      !isOtherProxy && !isInit)
    d.fail("expected a scope such as .cta");
  d.operandCount(0, 2);
  d.emit(isAsyncProxy ? proxyFence : isInit ? mbarrierFence : memoryFence, {}, {});
}

/// Decodes setmaxnreg. The emulator only checks the number of registers. Otherwise the instruction
/// has no effect.
static void decodeRegisters(Decoder &d) {
  if (d.modifiers.takeOneOf({"inc", "dec"}) < 0)
    d.fail("expected .inc or .dec");
  d.modifiers.take("sync");
  d.modifiers.take("aligned");
  d.typeOneOf({Type::U32});
  d.operandCount(1, 1);
  uint64_t count = d.constant(d.operand(0), "a number of registers");
  if (count < 24 || count > 256 || count % 8)
    d.fail("%llu registers, expected a multiple of 8 from 24 to 256",
           static_cast<unsigned long long>(count));
  d.emit(nothing, {}, {});
}

bool fsdprt::emulate::decodeBarrier(Decoder &d) {
  std::string_view name = d.modifiers.name();
  if (name == "membar" || name == "fence") {
    decodeFence(d);
  } else if (name == "bar" && d.modifiers.take("warp")) {
    d.modifiers.take("sync");
    d.operandCount(1, 1);
    d.emit(warpBarrier, {}, {d.source(0, Type::B32)});
  } else if (name == "barrier" && d.modifiers.take("cluster")) {
    decodeClusterBarrier(d);
  } else if (name == "bar" || name == "barrier") {
    decodeBlockBarrier(d);
  } else if (name == "setmaxnreg") {
    decodeRegisters(d);
  } else if (name == "trap" || name == "brkpt") {
    d.operandCount(0, 0);
    d.emit(trapped, {}, {});
  } else {
    // nanosleep, pmevent and griddepcontrol have no effect, since the emulator runs one grid at a
    // time.
    d.modifiers.takeOneOf({"wait", "launch_dependents", "mask"});
    if (name == "nanosleep")
      d.typeOneOf({Type::U32});
    d.emit(nothing, {}, {});
  }
  return true;
}
