//===- Access.cpp - Checked accesses to memory ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks the bounds and the alignment of each access, and whether the bytes that the access reads
// are initialised. Counts memory traffic. Races.cpp checks accesses for races.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Access.h"
#include <algorithm>

using namespace fsdprt;
using namespace fsdprt::emulate;

std::string fsdprt::emulate::describe(const Place &place) {
  return format("%s + 0x%llx", place.storage->name.c_str(),
                static_cast<unsigned long long>(place.offset));
}

void Access::outOfBounds(Space space, uint64_t address, unsigned bytes, unsigned lane,
                         const Storage *nearest) const {
  std::string where = "nothing is allocated";
  if (nearest) {
    bool isBehind = address >= nearest->base;
    uint64_t distance =
        isBehind ? address - nearest->base - nearest->size : nearest->base - address;
    where = isBehind && address - nearest->base < nearest->size
                ? format("it extends beyond the end of %s, which has %llu bytes",
                         nearest->name.c_str(), static_cast<unsigned long long>(nearest->size))
                : format("%llu bytes %s %s, which has %llu bytes",
                         static_cast<unsigned long long>(distance), isBehind ? "after" : "before",
                         nearest->name.c_str(), static_cast<unsigned long long>(nearest->size));
  }
  warp.fail(LaneMask(1) << lane, "%s %u bytes out of bounds at %s address 0x%llx: %s",
            touch == Touch::Reads ? "reads" : "writes", bytes, nameOf(space),
            static_cast<unsigned long long>(address), where.c_str());
}

/// Returns the space of a generic address and makes the address relative to the space's window.
static Space spaceOf(uint64_t &address) {
  uint64_t window = address >> windowShift;
  if (window == sharedWindow >> windowShift || window == localWindow >> windowShift ||
      window == parameterWindow >> windowShift) {
    address -= window << windowShift;
    return window == 1 ? Space::Shared : window == 2 ? Space::Local : Space::Param;
  }
  return Space::Global;
}

Place Access::resolve(Space space, uint64_t address, unsigned bytes, unsigned lane,
                      unsigned alignment) const {
  uint64_t asked = address;
  Space own = space;
  if (space == Space::Generic)
    own = spaceOf(address);
  if ((asked & ((alignment ? alignment : bytes) - 1)) != 0)
    warp.fail(LaneMask(1) << lane, "address 0x%llx is not aligned to %u bytes",
              static_cast<unsigned long long>(asked), alignment ? alignment : bytes);
  Place place;
  Block &block = warp.block;
  switch (own) {
  case Space::Shared: {
    uint64_t rank = address >> rankShift;
    if (rank > block.cluster.blocks.size())
      outOfBounds(space, asked, bytes, lane, nullptr);
    Block &owner = rank ? *block.cluster.blocks[rank - 1] : block;
    if (&owner != &block && !owner.liveThreads())
      warp.fail(LaneMask(1) << lane, "uses shared memory of block (%u,%u,%u), which has ended",
                owner.index.x, owner.index.y, owner.index.z);
    place = {&owner.shared, address & ((1u << rankShift) - 1), false, true};
    break;
  }
  case Space::Local: {
    uint64_t size = warp.program.localBytes;
    if (address > size || bytes > size - address)
      outOfBounds(space, asked, bytes, lane, nullptr);
    return {&warp.local, lane * size + address, false, false};
  }
  case Space::Param:
    place = {&block.cluster.grid.parameters, address, false, false};
    break;
  default:
    place.storage = block.cluster.grid.memory.find(address);
    place.isGlobal = true;
    if (!place.storage)
      outOfBounds(space, asked, bytes, lane, block.cluster.grid.memory.nearest(address));
    place.offset = address - place.storage->base;
  }
  if (place.offset > place.storage->size || bytes > place.storage->size - place.offset)
    outOfBounds(space, place.isGlobal ? asked : place.offset, bytes, lane, place.storage);
  if (touch != Touch::Reads && place.storage->isReadOnly)
    warp.fail(LaneMask(1) << lane, "writes to %s, which is read only", place.storage->name.c_str());
  return place;
}

void Access::checkWritten(const Place &place, unsigned bytes, unsigned lane) const {
  const uint8_t *written = place.storage->written.data() + place.offset;
  auto missing = static_cast<const uint8_t *>(std::memchr(written, 0, bytes));
  if (!missing)
    return;
  Place first = place;
  first.offset += missing - written;
  warp.fail(
      LaneMask(1) << lane, "reads %u bytes at %s, but %s was never written", bytes,
      describe(place).c_str(),
      bytes == 1
          ? "this byte"
          : format("the byte at + 0x%llx", static_cast<unsigned long long>(first.offset)).c_str());
}

void Access::noteVisit(const Place &place, uint32_t thread) const {
  const VectorClocks &clocks = warp.block.cluster.clocks;
  place.storage->visits.resize(clocks.threadCount());
  place.storage->visits[thread] = {clocks.timeOf(thread), warp.currentPc()};
}

void Access::check(const Place &place, unsigned bytes, unsigned lane, uint32_t thread,
                   const uint8_t *value) {
  const Checks &checks = warp.block.cluster.grid.launch.checks;
  if (touch != Touch::Writes && checks.initialised)
    checkWritten(place, bytes, lane);
  if (checks.races && (place.isShared || (place.isGlobal && !place.storage->isReadOnly)))
    checkRaces(place, bytes, lane, thread, value);
  if (place.isShared && place.storage != &warp.block.shared)
    noteVisit(place, thread);
  if (touch != Touch::Reads)
    std::memset(place.storage->written.data() + place.offset, 1, bytes);
  if (place.isGlobal && !place.storage->touched.empty())
    place.storage->noteTouched(place.offset, bytes,
                               (touch != Touch::Writes ? Storage::wasRead : 0) |
                                   (touch != Touch::Reads ? Storage::wasWritten : 0));
}

void Traffic::add(const Place &place, uint64_t address, unsigned bytes) {
  size = bytes;
  if (place.isGlobal)
    global[globalCount++] = address;
  else if (place.isShared)
    shared[sharedCount++] = place.offset;
}

/// Returns the number of distinct 32-byte sectors that contain bytes of the accesses.
static uint64_t sectors(const uint64_t *addresses, unsigned count, unsigned size) {
  uint64_t all[2 * warpSize];
  unsigned found = 0;
  for (unsigned k = 0; k < count; ++k)
    for (uint64_t sector = addresses[k] >> 5;
         sector <= (addresses[k] + size - 1) >> 5 && found < 2 * warpSize; ++sector)
      if (!found || all[found - 1] != sector)
        all[found++] = sector;
  std::sort(all, all + found);
  return std::unique(all, all + found) - all;
}

/// Counts the passes that shared memory needs for an access. Shared memory consists of 32 banks
/// that are 4 bytes wide. With at most 4 bytes per lane, all lanes of a warp access memory at the
/// same time. With 8 bytes per lane, half of the lanes access memory at a time, and with 16 bytes
/// per lane, a quarter of the lanes. These lanes need as many passes as the largest number of
/// distinct words that they access in a single bank. Counts all passes after the first as
/// conflicts.
static void countPasses(const uint64_t *offsets, unsigned count, unsigned size,
                        Counters &counters) {
  unsigned words = size < 4 ? 1 : size / 4, lanes = warpSize / words;
  for (unsigned first = 0; first < count; first += lanes) {
    uint64_t seen[32][32];
    uint8_t depth[32] = {};
    unsigned most = 1;
    for (unsigned k = first; k < std::min(first + lanes, count); ++k)
      for (unsigned w = 0; w < words; ++w) {
        uint64_t word = offsets[k] / 4 + w;
        unsigned bank = word % 32;
        if (std::find(seen[bank], seen[bank] + depth[bank], word) != seen[bank] + depth[bank])
          continue;
        seen[bank][depth[bank]++] = word;
        most = std::max<unsigned>(most, depth[bank]);
      }
    ++counters.sharedPasses;
    counters.bankConflicts += most - 1;
  }
}

void Traffic::count(Counters &counters, bool isStore) const {
  (isStore ? counters.globalStoreBytes : counters.globalLoadBytes) += uint64_t(globalCount) * size;
  (isStore ? counters.sharedStoreBytes : counters.sharedLoadBytes) += uint64_t(sharedCount) * size;
  if (globalCount)
    counters.globalSectors += sectors(global, globalCount, size);
  if (sharedCount)
    countPasses(shared, sharedCount, size, counters);
}
