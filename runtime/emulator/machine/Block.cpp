//===- Block.cpp - Blocks, clusters and their barriers ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Parallel Synchronization and Communication Instructions: barrier{.cta},
// barrier.cluster".
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Machine.h"

using namespace fsdprt;
using namespace fsdprt::emulate;

static constexpr uint64_t turnLength = 512;

Block::Block(Cluster &cluster, Dim index, unsigned rank)
    : cluster(cluster), index(index), rank(rank) {
  shared.name = "shared memory";
  shared.resize(cluster.grid.sharedBytes);
  uint64_t threads = cluster.grid.block.count();
  for (uint64_t first = 0; first < threads; first += warpSize) {
    uint64_t lanes = std::min<uint64_t>(threads - first, warpSize);
    LaneMask mask = lanes == warpSize ? allLanes : (LaneMask(1) << lanes) - 1;
    warps.push_back(std::make_unique<Warp>(*this, first / warpSize, mask));
  }
}

uint32_t Block::liveThreads() const {
  uint32_t count = 0;
  for (const auto &warp : warps)
    count += __builtin_popcount(warp->live);
  return count;
}

/// Writes the result of barrier.red (.and, .or or .popc) to the lanes that waited.
static void giveReduction(Warp &warp, const Split &split, const NamedBarrier &barrier) {
  const Instruction &instruction = *split.waiting.instruction;
  if (!instruction.outCount)
    return;
  LaneMask &known = warp.initialised(instruction.out[0]);
  LaneMask lanes = split.waiting.lanes;
  known |= lanes;
  if (barrier.reduction == 'p') {
    for (unsigned lane = 0; lane < warpSize; ++lane)
      if (lanes >> lane & 1)
        warp.at<uint32_t>(instruction.out[0])[lane] = barrier.count;
    return;
  }
  bool holds = barrier.reduction == 'o' ? barrier.count > 0 : barrier.count == barrier.arrived;
  LaneMask &result = warp.predicate(instruction.out[0]);
  result = (result & ~lanes) | (holds ? lanes : 0);
}

void Block::completeIfAllCame(unsigned number) {
  NamedBarrier &barrier = barriers[number];
  if (!barrier.arrived || barrier.arrived < (barrier.isAll ? liveThreads() : barrier.expected))
    return;
  for (auto &warp : warps)
    for (Split &split : warp->splits) {
      if (split.isOver || split.waiting.kind != Waiting::Barrier || split.waiting.barrier != number)
        continue;
      cluster.clocks.acquire(warp->firstThread, split.waiting.lanes, barrier.released);
      giveReduction(*warp, split, barrier);
      split.waiting = {};
    }
  barrier = {};
}

/// Checks that the accesses of other blocks to this block's shared memory are ordered before the
/// end of this block.
void Block::checkEnd(const Warp &last) const {
  if (shared.visits.empty() || !cluster.grid.launch.checks.races)
    return;
  uint32_t first = warps[0]->firstThread, count = warps.size() * warpSize;
  for (uint32_t visitor = 0; visitor < shared.visits.size(); ++visitor) {
    const Storage::Visit &visit = shared.visits[visitor];
    bool isKnown = !visit.time;
    for (uint32_t thread = first; thread < first + count && !isKnown; ++thread)
      isKnown = cluster.clocks.isBefore(visitor, visit.time, thread);
    if (!isKnown)
      last.fail(last.live,
                "the block ends, but line %u uses its shared memory in another block, with nothing "
                "between that orders the two",
                last.program.code[visit.instruction].at.line);
  }
}

void Block::threadsLeft() {
  for (unsigned number = 0; number < 16; ++number)
    if (barriers[number].isAll)
      completeIfAllCame(number);
  cluster.completeIfAllCame();
}

static uint32_t threadSlots(const Grid &grid) {
  uint64_t warps = (grid.block.count() + warpSize - 1) / warpSize;
  return warps * warpSize * grid.cluster.count();
}

static Dim clusterIndex(const Grid &grid, uint64_t linear) {
  Dim clusters{grid.grid.x / grid.cluster.x, grid.grid.y / grid.cluster.y,
               grid.grid.z / grid.cluster.z};
  return clusters.at(linear);
}

/// Returns the number of clocks of a cluster. Each thread, each agent of a thread, and each agent
/// of a warpgroup has a clock. An agent makes the accesses of asynchronous operations. The number
/// of clocks for warpgroups is rounded up to a multiple of 32.
static uint32_t clockCount(uint32_t threads) {
  return 2 * threads + (threads / (4 * warpSize) + warpSize) / warpSize * warpSize;
}

Cluster::Cluster(Grid &grid, uint64_t linear)
    : grid(grid), index(clusterIndex(grid, linear)), number(grid.memory.nextGroup++),
      threads(threadSlots(grid)), clocks(clockCount(threads)) {
  for (unsigned rank = 0; rank < grid.cluster.count(); ++rank) {
    Dim inner = grid.cluster.at(rank);
    Dim block{index.x * grid.cluster.x + inner.x, index.y * grid.cluster.y + inner.y,
              index.z * grid.cluster.z + inner.z};
    blocks.push_back(std::make_unique<Block>(*this, block, rank));
  }
}

uint32_t Cluster::liveThreads() const {
  uint32_t count = 0;
  for (const auto &block : blocks)
    count += block->liveThreads();
  return count;
}

bool Cluster::isBefore(const Cell::Access &other) const {
  auto known = foreign.find(other.group);
  if (known == foreign.end())
    return false;
  for (LaneMask lanes = other.lanes; lanes; lanes &= lanes - 1)
    if ((*known->second)[other.warp * warpSize + __builtin_ctz(lanes)] < other.time)
      return false;
  return true;
}

void Cluster::completeIfAllCame() {
  if (!arrived || arrived < liveThreads())
    return;
  ++phase;
  arrived = 0;
  released = std::move(arriving);
  arriving.clear();
  for (auto &block : blocks)
    for (auto &warp : block->warps)
      for (Split &split : warp->splits)
        if (!split.isOver && split.waiting.kind == Waiting::ClusterBarrier) {
          clocks.acquire(warp->firstThread, split.waiting.lanes, released);
          split.waiting = {};
        }
}

bool Cluster::runRound(std::minstd_rand *random) {
  bool isRunning = false, isAlive = false;
  for (auto &block : blocks)
    for (auto &warp : block->warps) {
      isRunning |= warp->run(random ? 1 + (*random)() % turnLength : turnLength);
      isAlive |= !warp->isOver();
    }
  if (isAlive && !isRunning)
    reportDeadlock();
  return isAlive;
}

static std::string waitsForPhase(const Warp &warp, const Waiting &waiting) {
  const Cluster &cluster = warp.block.cluster;
  uint64_t offset = waiting.address & ((uint64_t(1) << rankShift) - 1);
  std::string what = format("the phase of parity %u of the mbarrier at shared address 0x%llx",
                            waiting.parity, static_cast<unsigned long long>(offset));
  const Block &block = *cluster.blocks[(waiting.address >> rankShift) - 1];
  if (cluster.blocks.size() > 1)
    what += format(" of block (%u,%u,%u)", block.index.x, block.index.y, block.index.z);
  auto known = block.mbarriers.find(offset);
  if (known == block.mbarriers.end())
    return what;
  const Mbarrier &barrier = known->second;
  what += format(", which waits for %u of %u arrivals", barrier.pending, barrier.count);
  if (barrier.bytes)
    what += format(" and %lld bytes%s",
                   static_cast<long long>(barrier.bytes < 0 ? -barrier.bytes : barrier.bytes),
                   barrier.bytes < 0 ? " not yet announced" : "");
  return what;
}

static std::string waitsFor(const Warp &warp, const Split &split) {
  const Waiting &waiting = split.waiting;
  std::string what = "something";
  if (waiting.kind == Waiting::WarpBarrier) {
    what = format("bar.warp.sync for %s",
                  warp.nameOfLanes(waiting.mask & warp.live & ~waiting.lanes).c_str());
  } else if (waiting.kind == Waiting::Barrier) {
    const NamedBarrier &barrier = warp.block.barriers[waiting.barrier];
    what = format("barrier %u, to which %u of %u threads have come", waiting.barrier,
                  barrier.arrived, barrier.isAll ? warp.block.liveThreads() : barrier.expected);
  } else if (waiting.kind == Waiting::ClusterBarrier) {
    what = format("barrier.cluster, to which %u of %u threads have come",
                  warp.block.cluster.arrived, warp.block.cluster.liveThreads());
  } else if (waiting.kind == Waiting::Phase) {
    what = waitsForPhase(warp, waiting);
  }
  if (waiting.kind == Waiting::Product)
    what = waitsForProduct(warp);
  const Location &at = waiting.instruction->at;
  return format("%s, %s at line %u: %s", warp.name().c_str(),
                warp.nameOfLanes(waiting.lanes).c_str(), at.line, what.c_str());
}

void Cluster::reportDeadlock() const {
  std::string text;
  Location first;
  unsigned count = 0;
  for (const auto &block : blocks)
    for (const auto &warp : block->warps)
      for (const Split &split : warp->splits) {
        if (split.isOver || split.children || split.waiting.kind == Waiting::Nothing)
          continue;
        if (!count++)
          first = split.waiting.instruction->at;
        if (count <= 4)
          text += (count > 1 ? "; " : "") + waitsFor(*warp, split);
      }
  if (count > 4)
    text += format("; and %u more", count - 4);
  grid.program.module->source.fail(first, "deadlock: no thread can continue: %s", text.c_str());
}
