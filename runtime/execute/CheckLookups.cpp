//===- CheckLookups.cpp - Lookups that were out of range --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A program of an artifact with lookups that are checked leaves in the step block of each rank
//
//   slot 10        ranks on which a lookup was out of range, the same on all ranks
//   slot 11        1 + number of the first such lookup of this rank, or 0
//   slots 12 - 14  its index, in three parts that f32 holds
//
//  1. If slot 10 is 0 on the first rank here: done. One read of 64 bytes per run.
//  2. Find the first rank here with a lookup; exchange that with the other processes.
//  3. Throw an error with the place of the lookup. It is the same in all processes.
//
// What a block holds is not trusted: numbers are clamped.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "execute/Session.h"

using namespace fsdprt;
using ull = unsigned long long;

namespace {
/// What the ranks of one process found.
struct FailedLookup {
  uint64_t rank = UINT64_MAX; // the first rank with one
  uint64_t number = 0;
  int64_t index = 0;
};
} // namespace

/// A slot of the block as an integer, at most `most`; 0 if it is no number above 0.
static uint64_t integerIn(float slot, uint64_t most) {
  return slot > 0 ? slot < static_cast<float>(most) ? static_cast<uint64_t>(slot) : most : 0;
}

/// The index in three slots of the block.
static int64_t lookupIndex(const float *block) {
  const float *parts = block + FSDPRT_BLOCK_LOOKUP_VALUE;
  uint64_t high = integerIn(parts[0], 0x3fffff), middle = integerIn(parts[1], 0x1fffff),
           low = integerIn(parts[2], 0x1fffff);
  return static_cast<int64_t>(high << 42 | middle << 21 | low);
}

/// Throws Error if a lookup of the program that has just run was out of range on any rank. `first`:
/// the first rank here. All processes get here with the same number of such ranks, and tell each
/// other which of them these are.
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
    failed("%s: %s: a lookup is out of range", artifact.getFile().c_str(), group.where().c_str());
  const fb::Lookup &lookup = *lookups.Get(static_cast<uint32_t>(earliest.number - 1));
  failed("%s: %s: the lookup at %s has index %lld, expected one in [0, %llu), the %s; this run of "
         "the program changed no "
         "parameter; correct the batch, or what the model computes the index from",
         group.where().c_str(), who.c_str(), printable(lookup.location()->str()).c_str(),
         (long long)earliest.index, (ull)lookup.extent(), printable(lookup.what()->str()).c_str());
}
