//===- Warp.cpp - Execution of a warp ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements the loop over instructions and the tree of splits. When the lanes of a split diverge,
// the split becomes the parent of up to two child splits, and resumes at the instruction where the
// children reconverge. Lanes that branch directly to this instruction need no child split. If the
// paths meet only at the end of the program, or where the parent of the split resumes, the split
// gets no children. It is then divided into two splits with the same parent.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Lanes.h"
#include <cstdarg>
#include <cstdio>

using namespace fsdprt;
using namespace fsdprt::emulate;

/// freeParked() is called when a warp has executed this number of instructions without a change of
/// its splits.
static constexpr uint64_t progressTimeout = 1 << 16;

Warp::Warp(Block &block, unsigned index, LaneMask lanes)
    : block(block), program(block.cluster.grid.program), index(index), live(lanes) {
  unsigned warps = (block.cluster.grid.block.count() + warpSize - 1) / warpSize;
  firstThread = (block.rank * warps + index) * warpSize;
  size_t bytes = size_t(program.slotCount) * slotBytes;
  registers.reset(static_cast<uint8_t *>(std::aligned_alloc(slotBytes, bytes)));
  if (!registers)
    throw std::bad_alloc();
  std::memset(registers.get(), 0, bytes);
  initialisedLanes.assign(program.slotCount, 0);
  splits.push_back({});
  splits[0].mask = lanes;
  local.name = "local memory";
  local.resize(program.localBytes * warpSize);
  fillConstants();
  fillSpecials();
}

template <typename T>
static void fill(T *to, uint64_t value) {
  for (unsigned lane = 0; lane < warpSize; ++lane)
    to[lane] = static_cast<T>(value);
}

void Warp::fillConstants() {
  for (const Program::Constant &constant : program.constants) {
    initialisedLanes[constant.slot] = allLanes;
    switch (constant.size) {
    case 0:
      predicate(constant.slot) = constant.bits;
      break;
    case 2:
      fill(at<uint16_t>(constant.slot), constant.bits);
      break;
    case 4:
      fill(at<uint32_t>(constant.slot), constant.bits);
      break;
    default:
      fill(at<uint64_t>(constant.slot), constant.bits);
    }
  }
  for (const Program::AddressConstant &constant : program.addressConstants) {
    initialisedLanes[constant.slot] = allLanes;
    fill(at<uint64_t>(constant.slot),
         block.cluster.grid.variables.at(constant.variable)->base + constant.addend);
  }
}

static uint32_t component(const Dim &dim, char axis) {
  return axis == 'x' ? dim.x : axis == 'y' ? dim.y : dim.z;
}

/// Returns the value of a special register that is equal in all lanes (PTX ISA, "Special
/// Registers").
static uint64_t specialValue(const std::string &name, const Warp &warp) {
  const Block &block = warp.block;
  const Cluster &cluster = block.cluster;
  const Grid &grid = cluster.grid;
  Dim clusters{grid.grid.x / grid.cluster.x, grid.grid.y / grid.cluster.y,
               grid.grid.z / grid.cluster.z};
  std::string stem =
      name.substr(1, name.find('.') == std::string::npos ? name.npos : name.find('.') - 1);
  char axis = name.back();
  if (stem == "ntid")
    return component(grid.block, axis);
  if (stem == "ctaid")
    return component(block.index, axis);
  if (stem == "nctaid")
    return component(grid.grid, axis);
  if (stem == "clusterid")
    return component(cluster.index, axis);
  if (stem == "nclusterid")
    return component(clusters, axis);
  if (stem == "cluster_ctaid")
    return component(grid.cluster.at(block.rank), axis);
  if (stem == "cluster_nctaid")
    return component(grid.cluster, axis);
  if (stem == "cluster_ctarank")
    return block.rank;
  if (stem == "cluster_nctarank")
    return grid.cluster.count();
  if (stem == "is_explicit_cluster")
    return grid.cluster.count() > 1 ? allLanes : 0;
  if (stem == "warpid")
    return warp.index;
  if (stem == "nwarpid")
    return 64;
  if (stem == "nsmid")
    return 1;
  if (stem == "dynamic_smem_size")
    return grid.launch.dynamicSharedBytes;
  if (stem == "total_smem_size")
    return grid.sharedBytes;
  // %smid and %gridid are always 0.
  return 0;
}

static uint32_t laneValue(const std::string &name, const Warp &warp, unsigned lane) {
  if (name.substr(0, 5) == "%tid.")
    return component(warp.block.cluster.grid.block.at(warp.index * warpSize + lane), name.back());
  LaneMask own = LaneMask(1) << lane;
  if (name == "%lanemask_eq")
    return own;
  if (name == "%lanemask_lt")
    return own - 1;
  if (name == "%lanemask_le")
    return own | (own - 1);
  if (name == "%lanemask_gt")
    return ~(own | (own - 1));
  if (name == "%lanemask_ge")
    return ~(own - 1);
  return lane;
}

void Warp::fillSpecials() {
  for (const auto &[name, slot] : program.specials) {
    initialisedLanes[slot] = allLanes;
    if (name == "%is_explicit_cluster") {
      predicate(slot) = specialValue(name, *this);
    } else if (name == "%gridid") {
      fill(at<uint64_t>(slot), 0);
    } else if (name.substr(0, 5) == "%tid." || name == "%laneid" ||
               name.substr(0, 9) == "%lanemask") {
      for (unsigned lane = 0; lane < warpSize; ++lane)
        at<uint32_t>(slot)[lane] = laneValue(name, *this, lane);
    } else {
      fill(at<uint32_t>(slot), specialValue(name, *this));
    }
  }
}

std::string Warp::name() const {
  return format("warp %u of block (%u,%u,%u)", index, block.index.x, block.index.y, block.index.z);
}

std::string Warp::nameOfLanes(LaneMask lanes) const {
  if (lanes == live && __builtin_popcount(lanes) > 1)
    return "all lanes";
  if (__builtin_popcount(lanes) == 1)
    return format("lane %d", __builtin_ctz(lanes));
  std::string text;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    if (!(lanes >> lane & 1))
      continue;
    unsigned last = lane;
    while (last + 1 < warpSize && lanes >> (last + 1) & 1)
      ++last;
    text += (text.empty() ? "lanes " : ",") + std::to_string(lane) +
            (last > lane ? "-" + std::to_string(last) : "");
    lane = last;
  }
  return text;
}

void Warp::fail(LaneMask lanes, const char *text, ...) const {
  char message[768];
  va_list arguments;
  va_start(arguments, text);
  std::vsnprintf(message, sizeof message, text, arguments);
  va_end(arguments);
  const Instruction &instruction = program.code[currentPc()];
  program.module->source.fail(instruction.at, "%s: %s (%s, %s)",
                              std::string(instruction.opcode).c_str(), message, name().c_str(),
                              nameOfLanes(lanes).c_str());
}

void Warp::checkRead(Slot slot, LaneMask lanes) const {
  LaneMask missing = lanes & ~initialisedLanes[slot];
  if (!missing)
    return;
  auto name = program.names.find(slot);
  fail(missing, "reads %s before it is written",
       name == program.names.end() ? "a register" : name->second.c_str());
}

void Warp::branch(const Instruction &instruction, LaneMask taken) {
  Split &here = splits[split];
  LaneMask stays = here.mask & ~taken;
  uint32_t next = here.pc + 1, target = instruction.target, meet = instruction.meet;
  if (!taken || !stays) {
    here.pc = taken ? target : next;
    return;
  }
  ++block.cluster.grid.counters.divergentBranches;
  stalled = 0;
  if (meet == here.meet || meet == nowhere) {
    // Lanes that branch directly to the point of reconvergence leave this split. If neither path
    // branches directly to this point, the lanes of one path become a new split with the same
    // parent.
    if (target == meet || next == meet) {
      here.mask = target == meet ? stays : taken;
      here.pc = target == meet ? next : target;
      return;
    }
    Split other;
    other.pc = target, other.mask = taken, other.meet = here.meet, other.parent = here.parent;
    here.pc = next, here.mask = stays;
    if (here.parent >= 0)
      ++splits[here.parent].children;
    splits.push_back(other);
    return;
  }
  here.pc = meet;
  int32_t parent = split;
  for (auto [pc, mask] : {std::make_pair(target, taken), std::make_pair(next, stays)}) {
    if (pc == meet)
      continue;
    Split child;
    child.pc = pc, child.mask = mask, child.meet = meet, child.parent = parent;
    splits.push_back(child);
    ++splits[parent].children;
  }
}

/// Ends the current split, which has reached the instruction where it reconverges with its sibling.
void Warp::arrive() {
  stalled = 0;
  splits[split].isOver = true;
  --splits[splits[split].parent].children;
  while (splits.back().isOver)
    splits.pop_back();
}

void Warp::leave(LaneMask lanes) {
  live &= ~lanes;
  for (size_t i = splits.size(); i-- > 0;) {
    Split &each = splits[i];
    each.mask &= ~lanes;
    if (each.mask || each.children || each.isOver)
      continue;
    each.isOver = true;
    if (each.parent >= 0)
      --splits[each.parent].children;
  }
  while (splits.size() > 1 && splits.back().isOver)
    splits.pop_back();
  releaseWarpBarriers();
  block.threadsLeft();
}

/// Moves lanes that wait at a point of reconvergence to a new split, so that these lanes continue.
/// This function is called if the other lanes make no progress, for example because they loop until
/// one of the waiting lanes writes a value.
void Warp::freeParked() {
  stalled = 0;
  for (int32_t parent = splits[std::min<size_t>(split, splits.size() - 1)].parent; parent >= 0;
       parent = splits[parent].parent) {
    LaneMask parked = splits[parent].mask;
    for (const Split &each : splits)
      if (!each.isOver && each.parent == parent)
        parked &= ~each.mask;
    if (!parked)
      continue;
    Split &from = splits[parent];
    Split freed;
    freed.pc = from.pc, freed.meet = from.meet, freed.mask = parked, freed.parent = from.parent;
    from.mask &= ~parked;
    if (from.parent >= 0)
      ++splits[from.parent].children;
    splits.push_back(freed);
    return;
  }
}

/// Selects the current split if it is ready. Otherwise searches for a ready split: first backwards
/// from the current split to split 0, then backwards from the last split.
bool Warp::chooseSplit() {
  unsigned count = splits.size(), start = std::min(split, count - 1);
  for (unsigned back = 0; back < count; ++back)
    if (splits[(start + count - back) % count].isReady()) {
      split = (start + count - back) % count;
      return true;
    }
  return false;
}

Step Warp::wait(Waiting::Kind kind, const Instruction &instruction, LaneMask lanes) {
  stalled = 0;
  splits[split].waiting.kind = kind;
  splits[split].waiting.lanes = lanes;
  splits[split].waiting.instruction = &instruction;
  return Step::Waits;
}

void Warp::releaseWarpBarriers() {
  for (const Split &first : splits) {
    if (first.isOver || first.waiting.kind != Waiting::WarpBarrier)
      continue;
    LaneMask mask = first.waiting.mask, here = 0;
    auto isOne = [&](const Split &s) {
      return !s.isOver && s.waiting.kind == Waiting::WarpBarrier && s.waiting.mask == mask;
    };
    for (const Split &each : splits)
      here |= isOne(each) ? each.waiting.lanes : 0;
    if (mask & live & ~here)
      continue;
    Released released;
    block.cluster.clocks.release(firstThread, here, released);
    block.cluster.clocks.acquire(firstThread, here, released);
    for (Split &each : splits)
      if (isOne(each))
        each.waiting = {};
  }
}

bool Warp::run(uint64_t turn) {
  uint64_t before = turn;
  while (turn && live && chooseSplit())
    runSplit(turn);
  if (!turn && live) {
    stalled += before;
    if (stalled > progressTimeout)
      freeParked();
    split = (split + splits.size() - 1) % splits.size();
  }
  return turn != before;
}

/// Checks that operands are initialised, runs the instruction and marks its results as initialised.
/// Returns false if the split must wait.
bool Warp::execute(const Instruction &instruction, LaneMask active) {
  bool isChecked = block.cluster.grid.launch.checks.initialised;
  LaneMask known = allLanes;
  for (unsigned k = 0, count = instruction.inCount - instruction.uncheckedIns; k < count; ++k)
    known &= initialisedLanes[instruction.in[k]];
  if (instruction.flow != Flow::Moves && isChecked && (active & ~known))
    for (unsigned k = 0, count = instruction.inCount - instruction.uncheckedIns; k < count; ++k)
      checkRead(instruction.in[k], active);
  if (instruction.isWatched && !useRegisters(*this, instruction))
    return false;
  Step step = instruction.run(*this, instruction, active);
  if (step == Step::Retries)
    return false;
  LaneMask now = instruction.flow == Flow::Moves ? active & known : active;
  for (unsigned k = 0; k < instruction.outCount; ++k)
    keepBits(initialisedLanes[instruction.out[k]], now, active);
  ++splits[split].pc;
  return step == Step::Next;
}

void Warp::runSplit(uint64_t &turn) {
  Grid &grid = block.cluster.grid;
  for (uint32_t own = split; turn && live;) {
    Split &here = splits[own];
    if (here.pc == here.meet)
      return arrive();
    const Instruction &instruction = program.code[here.pc];
    --turn;
    if (!grid.stepsLeft--)
      fail(here.mask, "the limit of %llu instructions is reached",
           static_cast<unsigned long long>(grid.launch.stepLimit));
    ++serial;
    LaneMask active = here.mask;
    if (instruction.guard) {
      if (grid.launch.checks.initialised)
        checkRead(instruction.guard, active);
      LaneMask guard = predicate(instruction.guard);
      active &= instruction.isGuardNegated ? ~guard : guard;
    }
    ++grid.executed[here.pc];
    grid.counters.laneInstructions += __builtin_popcount(active);
    if (instruction.flow == Flow::Branch) {
      branch(instruction, active);
      if (splits[own].children)
        return;
    } else if (instruction.flow == Flow::Exit) {
      if (active == live) {
        leaveWarpgroup(*this);
        if (block.liveThreads() == uint32_t(__builtin_popcount(live)))
          block.checkEnd(*this);
      }
      ++here.pc;
      if (active)
        leave(active);
      if (own >= splits.size() || !splits[own].isReady())
        return;
    } else if (!active) {
      ++here.pc;
    } else if (!execute(instruction, active)) {
      return;
    }
  }
}
