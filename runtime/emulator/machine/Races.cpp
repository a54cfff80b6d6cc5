//===- Races.cpp - Races between threads ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two accesses to the same bytes race if at least one is a write, at least one is not strong, and
// neither is ordered before the other (PTX ISA, "Memory Consistency Model"). Each cell records its
// last write, its last weak write, and the reads since its last write. A recorded read is dropped
// if it is ordered before a new read, because an access that is ordered after the new read is then
// also ordered after the dropped read.
//
// Only a proxy fence orders an access through the async proxy after an ordinary store.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Access.h"

using namespace fsdprt;
using namespace fsdprt::emulate;

bool Access::isOrdered(const Cell::Access &before, uint32_t thread) const {
  const Cluster &cluster = warp.block.cluster;
  if (before.group != cluster.number)
    return cluster.isBefore(before);
  for (LaneMask lanes = before.lanes; lanes; lanes &= lanes - 1)
    if (!cluster.clocks.isBefore(before.warp * warpSize + __builtin_ctz(lanes), before.time,
                                 thread))
      return false;
  return true;
}

bool Access::isProxied(const Cell::Access &before, uint32_t thread) const {
  const Cluster &cluster = warp.block.cluster;
  if (before.group != cluster.number)
    return true;
  for (LaneMask lanes = before.lanes; lanes; lanes &= lanes - 1)
    if (!cluster.clocks.isProxied(before.warp * warpSize + __builtin_ctz(lanes), before.time,
                                  thread))
      return false;
  return true;
}

/// Returns a name, for messages, of the threads that have made an access in this cluster. The
/// indices of the agents of warpgroups follow the indices of threads and their agents. An access of
/// cp.async is named after the lanes that started the copy. A bulk copy uses the agent of an
/// arbitrary thread, so its accesses are named "a copy".
std::string Access::nameOfThreads(const Cell::Access &access) const {
  const Cluster &cluster = warp.block.cluster;
  unsigned warps = cluster.blocks[0]->warps.size(), all = warps * cluster.blocks.size(),
           number = access.warp % all;
  if (access.warp >= 2 * all)
    for (const auto &block : cluster.blocks)
      for (const auto &each : block->warps)
        if (each->index % 4 == 0 && cluster.warpgroupAgent(each->firstThread) ==
                                        access.warp * warpSize + __builtin_ctz(access.lanes))
          return "the warpgroup of " + each->name();
  if (access.isAsync && access.warp >= all)
    return "a copy";
  const Warp &first = *cluster.blocks[number / warps]->warps[number % warps];
  return format("%s of %s", warp.nameOfLanes(access.lanes).c_str(),
                &first == &warp ? "the same warp" : first.name().c_str());
}

void Access::reportRace(const Cell::Access &before, bool wasWrite, const Place &place,
                        unsigned bytes, unsigned lane) const {
  const Cluster &cluster = warp.block.cluster;
  const Instruction &other = warp.program.code[before.instruction];
  std::string who = "another block";
  bool isAgent = before.warp * warpSize >= cluster.threads;
  if (before.group == cluster.number)
    who = nameOfThreads(before);
  warp.fail(LaneMask(1) << lane,
            "data race: %s %u bytes at %s, which %s %s %s at line %u, with nothing between that "
            "orders the two",
            touch == Touch::Reads ? "reads" : "writes", bytes, describe(place).c_str(), who.c_str(),
            isAgent ? "asynchronously" : "has",
            wasWrite ? (isAgent ? "writes" : "written") : (isAgent ? "reads" : "read"),
            other.at.line);
}

void Access::checkAgainst(const Cell::Access &before, bool wasWrite, const Place &place,
                          unsigned bytes, unsigned lane, uint32_t thread, bool isSameValue) const {
  const Cluster &cluster = warp.block.cluster;
  if (!before.group || before.group < cluster.grid.memory.firstGroup ||
      (before.isStrong && isStrong))
    return;
  uint32_t own = thread / warpSize;
  bool isSameInstruction =
      before.group == cluster.number && before.warp == own && before.serial == warp.serial;
  if (isSameInstruction) {
    if (!wasWrite || isSameValue || isAsync)
      return;
    warp.fail(LaneMask(1) << lane, "two lanes write different values to %s",
              describe(place).c_str());
  }
  Known &last = known[wasWrite];
  const Cell::Access &fine = last.access;
  if (fine.group == before.group && fine.time == before.time && fine.warp == before.warp &&
      fine.lanes == before.lanes && fine.isAsync == before.isAsync && last.thread == thread)
    return;
  if (!isOrdered(before, thread))
    reportRace(before, wasWrite, place, bytes, lane);
  if (isAsync && wasWrite && !before.isAsync && !isProxied(before, thread))
    warp.fail(LaneMask(1) << lane,
              "the async proxy %s %s, which ordinary stores have written at line %u, with no "
              "fence.proxy.async between",
              touch == Touch::Reads ? "reads" : "writes", describe(place).c_str(),
              warp.program.code[before.instruction].at.line);
  last = {before, thread};
}

/// Records a read. Drops an earlier read that is ordered before this read.
void Access::noteRead(Cell &cell, const Place &place, const Cell::Access &now, uint32_t thread) {
  Cell::Access &last = cell.read;
  if (last.group == now.group && last.warp == now.warp && last.time == now.time &&
      last.isStrong == now.isStrong) {
    last.lanes |= now.lanes;
    last.serial = now.serial, last.instruction = now.instruction;
    return;
  }
  if (last.group && last.group != now.group) {
    Cell::Access foreign = last;
    place.storage->shadow.dropReads(cell);
    cell.foreignRead = foreign;
  } else if (last.group && !isOrdered(last, thread)) {
    Shadow &shadow = place.storage->shadow;
    for (uint32_t at = cell.moreReads; at; at = shadow.chains[at].next)
      if (shadow.chains[at].access.warp == last.warp &&
          !(shadow.chains[at].access.lanes & ~last.lanes)) {
        shadow.chains[at].access = last;
        last = now;
        return;
      }
    uint32_t added = shadow.chain(last, cell.moreReads);
    cell.moreReads = added;
  }
  last = now;
}

void Access::touchCell(Cell &cell, const Place &place, unsigned bytes, unsigned lane,
                       uint32_t thread, bool isSameValue) {
  const Cluster &cluster = warp.block.cluster;
  checkAgainst(cell.write, true, place, bytes, lane, thread, isSameValue);
  if (cell.weakWrite)
    checkAgainst(place.storage->shadow.chains[cell.weakWrite].access, true, place, bytes, lane,
                 thread, isSameValue);
  Cell::Access now;
  now.group = cluster.number;
  now.time = cluster.clocks.timeOf(thread);
  now.serial = warp.serial;
  now.instruction = warp.currentPc();
  now.lanes = LaneMask(1) << thread % warpSize;
  now.warp = thread / warpSize;
  now.isStrong = isStrong, now.isAsync = isAsync;
  if (touch == Touch::Reads)
    return noteRead(cell, place, now, thread);
  checkAgainst(cell.read, false, place, bytes, lane, thread, true);
  checkAgainst(cell.foreignRead, false, place, bytes, lane, thread, true);
  for (uint32_t at = cell.moreReads; at; at = place.storage->shadow.chains[at].next)
    checkAgainst(place.storage->shadow.chains[at].access, false, place, bytes, lane, thread, true);
  Shadow &shadow = place.storage->shadow;
  shadow.dropReads(cell);
  cell.foreignRead.group = 0;
  if (isStrong)
    shadow.keepWeakWrite(cell);
  else
    shadow.dropWeakWrite(cell);
  cell.write = now;
}

/// Checks an access to the bytes [place.offset, end) against `cell`, which covers [begin, begin +
/// size).
void Access::checkCell(Cell &cell, unsigned size, uint64_t begin, uint64_t end, const Place &place,
                       unsigned lane, uint32_t thread, bool isSameValue) {
  unsigned bytes = end - place.offset;
  bool isWhole = begin >= place.offset && begin + size <= end;
  if (isWhole && !cell.parts)
    return touchCell(cell, place, bytes, lane, thread, isSameValue);
  Shadow &shadow = place.storage->shadow;
  shadow.split(cell);
  unsigned quarter = size / 4;
  for (unsigned k = 0; k < 4; ++k) {
    uint64_t at = begin + k * quarter;
    if (at < end && at + quarter > place.offset)
      checkCell(cell.parts[k], quarter, at, end, place, lane, thread, isSameValue);
  }
  if (isWhole && touch == Touch::Writes && !isStrong)
    shadow.join(cell);
}

void Access::checkRaces(const Place &place, unsigned bytes, unsigned lane, uint32_t thread,
                        const uint8_t *value) {
  bool isSameValue = !value || std::memcmp(value, place.bytes(), bytes) == 0;
  uint64_t end = place.offset + bytes;
  for (uint64_t at = place.offset / Shadow::cellBytes * Shadow::cellBytes; at < end;
       at += Shadow::cellBytes)
    checkCell(place.storage->shadow.cell(at / Shadow::cellBytes), Shadow::cellBytes, at, end, place,
              lane, thread, isSameValue);
}
