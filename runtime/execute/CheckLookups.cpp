//===- CheckLookups.cpp - Report lookups that are out of range --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// If table lookups are checked, a program writes these slots of each rank's step block:
//
//     slot 10         number of ranks with a lookup out of range; the same on all ranks
//     slot 11         1 + index of the rank's first failed lookup in the manifest; 0 if none failed
//     slots 12 - 14   the id that this lookup read, in three parts that f32 represents exactly
//
// checkLookups() does the following:
//
//  1. Read the step block (64 bytes) of the first rank of this process. If slot 10 is 0, return.
//  2. Find the first rank of this process that has a lookup out of range. Exchange this rank, the
//     index of the lookup and the id with the other processes.
//  3. Throw Error with the location of the lookup. All processes throw the same message.
//
// Values from the step block are clamped, because a faulty program may write any value.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "execute/Session.h"

using namespace fsdprt;
using ull = unsigned long long;

namespace {
struct FailedLookup {
  /// First rank with a lookup out of range, or UINT64_MAX if no rank has such a lookup.
  uint64_t rank = UINT64_MAX;
  uint64_t number = 0;
  int64_t index = 0;
};
} // namespace

/// Converts a slot of a step block to an integer in [0, most]. Returns 0 for NaN.
static uint64_t integerIn(float slot, uint64_t most) {
  return slot > 0 ? slot < static_cast<float>(most) ? static_cast<uint64_t>(slot) : most : 0;
}

/// Returns the id that slots 12 to 14 of a step block contain.
static int64_t lookupIndex(const float *block) {
  const float *parts = block + FSDPRT_BLOCK_LOOKUP_VALUE;
  uint64_t high = integerIn(parts[0], 0x3fffff), middle = integerIn(parts[1], 0x1fffff),
           low = integerIn(parts[2], 0x1fffff);
  return static_cast<int64_t>(high << 42 | middle << 21 | low);
}

/// Throws Error if a lookup of the last run was out of range on any rank. `first` is the first rank
/// of this process. All processes must call checkLookups(), because they exchange their results.
void Session::checkLookups(const RankGroup &group, uint32_t first) {
  float block[FSDPRT_BLOCK_SIZE];
  readBlock(first, block);
  if (block[FSDPRT_BLOCK_LOOKUPS] == 0)
    return;
  const auto &lookups = *artifact.manifest().lookups();
  auto numRanks = static_cast<uint32_t>(integerIn(block[FSDPRT_BLOCK_LOOKUPS], group.ranks()));
  FailedLookup earliest;
  uint32_t here = first == FSDPRT_REFERENCE ? 1 : group.localRanks();
  for (uint32_t i = 0; i < here && earliest.rank == UINT64_MAX; ++i) {
    readBlock(first == FSDPRT_REFERENCE ? first : first + i, block);
    if (uint64_t number = integerIn(block[FSDPRT_BLOCK_LOOKUP_NUMBER], lookups.size()))
      earliest = {first == FSDPRT_REFERENCE ? 0 : first + i, number, lookupIndex(block)};
  }
  Communicator &communicator = ranks->getCommunicator();
  if (first != FSDPRT_REFERENCE && communicator.processes() > 1) {
    std::vector<FailedLookup> all(communicator.processes());
    communicator.exchange(&earliest, sizeof earliest, all.data());
    for (const FailedLookup &other : all)
      if (other.rank < earliest.rank)
        earliest = other;
  }
  std::string who = first == FSDPRT_REFERENCE ? "the unsharded reference"
                                              : format("rank %llu", (ull)earliest.rank);
  if (numRanks > 1)
    who += format(" (and %u more)", numRanks - 1);
  if (earliest.number < 1 || earliest.number > lookups.size())
    failed("%s: %s: a lookup is out of range; its number in the step block is invalid",
           artifact.getFile().c_str(), group.where().c_str());
  const fb::Lookup &lookup = *lookups.Get(static_cast<uint32_t>(earliest.number - 1));
  failed("%s: %s: the lookup at %s has index %lld, expected one in [0, %llu), the %s; this run of "
         "the program changed no parameter; correct the batch or the computation of the index",
         group.where().c_str(), who.c_str(), printable(lookup.location()->str()).c_str(),
         (long long)earliest.index, (ull)lookup.extent(), printable(lookup.what()->str()).c_str());
}
