//===- Warpgroup.cpp - Order of warpgroup products --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions: wgmma.fence,
// wgmma.mma_async, wgmma.commit_group, wgmma.wait_group". A wgmma.fence is required between an
// access to a register and a later product that uses the register. Two products of the same shape
// that add to the same accumulators need no wgmma.fence between them. For these checks, a copy
// between registers gives its target register the state of its source register, because ptxas may
// remove the copy when it allocates registers.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Warpgroup.h"
#include "emulator/machine/Decoder.h"
#include "emulator/machine/Lanes.h"

using namespace fsdprt;
using namespace fsdprt::emulate;

static constexpr unsigned groupWarps = 4;

static void checkWhole(Warp &warp, LaneMask active) {
  if (active != allLanes)
    warp.fail(active, "all 32 lanes have to take part");
}

static WarpProducts &productsOf(Warp &warp) {
  if (warp.products.registers.empty())
    warp.products.registers.resize(warp.program.slotCount);
  return warp.products;
}

/// Returns the warpgroup of a warp. A warpgroup consists of four consecutive warps of a block, and
/// the index of its first warp is a multiple of four.
static Warpgroup &groupOf(Warp &warp) {
  Block &block = warp.block;
  unsigned number = warp.index / groupWarps;
  if (groupWarps * (number + 1) > block.warps.size())
    warp.fail(allLanes, "the block has %zu warps, but warp %u is of a warpgroup of %u to %u",
              block.warps.size(), warp.index, groupWarps * number,
              groupWarps * number + groupWarps - 1);
  if (block.warpgroups.size() <= number)
    block.warpgroups.resize(number + 1);
  Warpgroup &group = block.warpgroups[number];
  group.agent = block.cluster.warpgroupAgent(block.warps[groupWarps * number]->firstThread);
  return group;
}

template <typename Action>
static void eachWarp(Warp &warp, Action action) {
  for (unsigned k = 0; k < groupWarps; ++k)
    action(*warp.block.warps[warp.index / groupWarps * groupWarps + k]);
}

static uint64_t issuedByAll(Warp &warp) {
  uint64_t least = UINT64_MAX;
  eachWarp(warp, [&](Warp &each) { least = std::min(least, each.products.issued); });
  return least;
}

/// Runs the products that all warps have issued, and wakes warps that wait for a product.
static void runIssued(Warp &warp, Warpgroup &group) {
  for (uint64_t all = issuedByAll(warp); group.executed < all; ++group.executed) {
    runProduct(warp, group, group.pending.front());
    group.pending.pop_front();
    group.times.push_back(warp.block.cluster.clocks.finish(group.agent));
    eachWarp(warp, [](Warp &each) {
      for (Split &split : each.splits)
        if (split.waiting.kind == Waiting::Product)
          split.waiting = {};
    });
  }
}

static const char *nameOfRegister(const Warp &warp, Slot slot) {
  auto name = warp.program.names.find(slot);
  return name == warp.program.names.end() ? "a register" : name->second.c_str();
}

static bool isSameShape(const Instruction &a, const Instruction &b) { return a.opcode == b.opcode; }

static void checkFence(Warp &warp, const Instruction &i, Slot slot, RegisterUse::Kind kind) {
  const WarpProducts &products = warp.products;
  const RegisterUse &use = products.registers[slot];
  const Instruction &before = warp.program.code[use.instruction];
  bool isInFlight = use.product > products.known;
  if (use.kind == kind && (kind == RegisterUse::Fragment || isSameShape(before, i)))
    return;
  if (isInFlight && use.kind != kind)
    warp.fail(
        allLanes,
        "uses %s, which the product at line %u uses, with no wgmma.wait_group for it in between",
        nameOfRegister(warp, slot), before.at.line);
  if (use.fences == products.fences)
    warp.fail(allLanes,
              use.fences || use.instruction
                  ? "uses %s, which line %u accesses, with no wgmma.fence between"
                  : "uses %s with no wgmma.fence before",
              nameOfRegister(warp, slot), before.at.line);
}

static void useInProduct(Warp &warp, const Instruction &i, const Slot *slots, unsigned count,
                         RegisterUse::Kind kind) {
  WarpProducts &products = warp.products;
  for (unsigned k = 0; k < count; ++k) {
    checkFence(warp, i, slots[k], kind);
    products.registers[slots[k]] = {products.issued + 1, products.fences, warp.currentPc(), kind};
  }
}

static void checkAccess(Warp &warp, const Slot *slots, unsigned count, const char *what) {
  for (unsigned k = 0; k < count; ++k) {
    const RegisterUse &use = warp.products.registers[slots[k]];
    if (use.product > warp.products.known)
      warp.fail(
          allLanes,
          "%s %s, which the product at line %u %s, with no wgmma.wait_group for it in between",
          what, nameOfRegister(warp, slots[k]), warp.program.code[use.instruction].at.line,
          use.kind == RegisterUse::Accumulator ? "uses as accumulator" : "reads");
  }
}

bool fsdprt::emulate::useRegisters(Warp &warp, const Instruction &i) {
  if (i.isWgmma)
    return true;
  WarpProducts &products = productsOf(warp);
  checkAccess(warp, i.out, i.outCount, "writes");
  if (i.isRenaming) {
    const RegisterUse &from = products.registers[i.in[0]];
    if (from.product > products.known && from.kind == RegisterUse::Accumulator &&
        groupOf(warp).executed < from.product) {
      warp.wait(Waiting::Product, i, allLanes);
      return false;
    }
    products.registers[i.out[0]] = from;
    return true;
  }
  checkAccess(warp, i.in, i.inCount, "reads");
  for (auto [slots, count] : {std::make_pair(i.in, i.inCount), std::make_pair(i.out, i.outCount)})
    for (unsigned k = 0; k < count; ++k) {
      RegisterUse &use = products.registers[slots[k]];
      use.fences = products.fences, use.instruction = warp.currentPc(),
      use.kind = RegisterUse::Ordinary;
    }
  return true;
}

namespace {
/// Returns the descriptor in a slot. Fails if the lanes have different descriptors.
uint64_t descriptorOf(Warp &warp, Slot slot) {
  const uint64_t *values = warp.at<uint64_t>(slot);
  for (unsigned lane = 1; lane < warpSize; ++lane)
    if (values[lane] != values[0])
      warp.fail(LaneMask(1) << lane,
                "lanes have different matrix descriptors: 0x%llx and 0x%llx of lane 0",
                static_cast<unsigned long long>(values[lane]),
                static_cast<unsigned long long>(values[0]));
  return values[0];
}

/// Returns the product that the operands of the instruction describe. The comment on issueProduct()
/// gives the order of the operands.
IssuedProduct productOf(Warp &warp, const Instruction &i) {
  const WgmmaPlan &plan = *static_cast<const WgmmaPlan *>(i.plan);
  LaneMask adds = warp.predicate(i.in[i.inCount - 1]);
  if (adds && adds != allLanes)
    warp.fail(adds, "lanes have different predicates");
  if (adds && warp.block.cluster.grid.launch.checks.initialised)
    for (unsigned k = 0; k < i.outCount; ++k)
      warp.checkRead(i.out[k], allLanes);
  return {warp.currentPc(), plan.aIsShared ? descriptorOf(warp, i.in[0]) : 0,
          descriptorOf(warp, i.in[i.inCount - 2]), adds != 0};
}

void checkSame(Warp &warp, const IssuedProduct &first, const IssuedProduct &own) {
  if (first.instruction != own.instruction)
    warp.fail(allLanes, "another warp of the warpgroup has issued the product at line %u here",
              warp.program.code[first.instruction].at.line);
  if (first.a != own.a || first.b != own.b || first.adds != own.adds)
    warp.fail(allLanes, "another warp of the warpgroup has issued this with %s",
              first.adds != own.adds ? "another predicate" : "other matrix descriptors");
}
} // namespace

Step fsdprt::emulate::issueProduct(Warp &warp, const Instruction &i, LaneMask active) {
  checkWhole(warp, active);
  Warpgroup &group = groupOf(warp);
  WarpProducts &products = productsOf(warp);
  IssuedProduct own = productOf(warp, i);
  bool aIsShared = static_cast<const WgmmaPlan *>(i.plan)->aIsShared;
  if (!aIsShared)
    useInProduct(warp, i, i.in, i.inCount - 2, RegisterUse::Fragment);
  useInProduct(warp, i, i.out, i.outCount, RegisterUse::Accumulator);
  uint64_t place = products.issued++ - group.executed;
  if (place == group.pending.size())
    group.pending.push_back(own);
  else
    checkSame(warp, group.pending[place], own);
  runIssued(warp, group);
  return Step::Next;
}

static Step fenceRegisters(Warp &warp, const Instruction &i, LaneMask active) {
  checkWhole(warp, active);
  groupOf(warp);
  ++productsOf(warp).fences;
  return Step::Next;
}

static Step commit(Warp &warp, const Instruction &i, LaneMask active) {
  checkWhole(warp, active);
  groupOf(warp);
  productsOf(warp).groups.push_back(warp.products.issued);
  return Step::Next;
}

/// Drops the stored times of products for which all warps of the warpgroup have waited.
static void dropTimes(Warp &warp, Warpgroup &group) {
  uint64_t known = UINT64_MAX;
  eachWarp(warp, [&](Warp &each) { known = std::min(known, each.products.known); });
  for (; group.firstTime <= known; ++group.firstTime)
    group.times.pop_front();
}

static Step waitForGroups(Warp &warp, const Instruction &i, LaneMask active) {
  checkWhole(warp, active);
  Warpgroup &group = groupOf(warp);
  WarpProducts &products = productsOf(warp);
  if (products.groups.size() <= i.payload)
    return Step::Next;
  uint64_t last = products.groups[products.groups.size() - i.payload - 1];
  if (group.executed < last) {
    warp.wait(Waiting::Product, i, active);
    return Step::Retries;
  }
  products.groups.erase(products.groups.begin(), products.groups.end() - i.payload);
  if (last > products.known) {
    warp.block.cluster.clocks.learn(warp.firstThread, active, group.agent,
                                    group.times[last - group.firstTime]);
    products.known = last;
    dropTimes(warp, group);
  }
  return Step::Next;
}

std::string fsdprt::emulate::waitsForProduct(const Warp &warp) {
  const Warpgroup &group = warp.block.warpgroups[warp.index / groupWarps];
  std::string missing;
  for (unsigned k = warp.index / groupWarps * groupWarps, end = k + groupWarps; k < end; ++k)
    if (warp.block.warps[k]->products.issued <= group.executed)
      missing += (missing.empty() ? "" : ", ") + std::to_string(k);
  return format("the product at line %u, which warps %s of the warpgroup have not issued",
                warp.program.code[group.pending.front().instruction].at.line, missing.c_str());
}

void fsdprt::emulate::leaveWarpgroup(Warp &warp) {
  unsigned number = warp.index / groupWarps;
  if (number >= warp.block.warpgroups.size())
    return;
  const Warpgroup &group = warp.block.warpgroups[number];
  if (warp.products.issued < group.executed + group.pending.size())
    warp.fail(
        allLanes,
        "leaves without the product at line %u, which another warp of the warpgroup has issued",
        warp.program.code[group.pending[warp.products.issued - group.executed].instruction]
            .at.line);
}

bool fsdprt::emulate::decodeWgmmaOrder(Decoder &d) {
  int what = d.modifiers.takeOneOf({"fence", "commit_group", "wait_group"});
  if (what < 0)
    return false;
  if (!d.modifiers.take("sync") || !d.modifiers.take("aligned"))
    d.fail("expected .sync.aligned");
  d.operandCount(what == 2, what == 2);
  uint64_t left = what == 2 ? d.constant(d.operand(0), "a number of groups") : 0;
  Instruction &i = d.emit(what == 0 ? fenceRegisters : what == 1 ? commit : waitForGroups, {}, {});
  i.payload = left, i.isWgmma = true;
  return true;
}
