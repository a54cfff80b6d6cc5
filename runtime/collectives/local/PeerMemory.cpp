//===- PeerMemory.cpp - Collectives by reading peers' memory ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PeerMemory.h. Long copies and sums are divided among the workers of a rank. Each
// element is computed by a single worker, so that the value of the element does not depend on the
// number of workers.
//
//===----------------------------------------------------------------------===//

#include "collectives/local/PeerMemory.h"
#include "collectives/local/Reduce.h"
#include <cstring>

using namespace fsdprt;

// milliseconds between two checks of the watchdog
static constexpr uint32_t pollMilliseconds = 20;
// Least number of bytes of a copy or a sum that is divided among workers.
static constexpr uint64_t parallelBytes = 64 << 10;

void PeerMemory::reach(uint32_t collective, uint32_t rank, uint64_t progress) {
  slotOf(collective, rank).progress.store(progress, std::memory_order_release);
  const std::vector<uint32_t> &members = membersOf(collective, rank);
  if (members.size() > 1)
    peers[members[0]].event->notify();
}

void PeerMemory::await(uint32_t collective, uint32_t rank, uint64_t progress) {
  const std::vector<uint32_t> &members = membersOf(collective, rank);
  if (members.size() == 1)
    return;
  auto isThere = [&](uint32_t member) {
    return slotOf(collective, member).progress.load(std::memory_order_acquire) >= progress;
  };
  auto allThere = [&] {
    for (uint32_t member : members)
      if (!isThere(member))
        return false;
    return true;
  };
  ProgressTimeout progressTimeout(*watchdog);
  waitFor(*peers[members[0]].event, spins, pollMilliseconds, allThere, [&] {
    poll();
    uint64_t beats = 0;
    for (uint32_t member : members)
      if (!isThere(member))
        beats += watchdog->beats(member);
    if (!progressTimeout.hasExpired(beats))
      return;
    std::vector<uint32_t> missing;
    for (uint32_t member : members)
      if (!isThere(member))
        missing.push_back(member);
    if (!missing.empty())
      reportMissing(collective, rank, missing);
  });
}

void PeerMemory::begin(uint32_t collective, uint32_t rank, const std::byte *source,
                       std::byte *target) {
  CollectiveSlot &slot = slotOf(collective, rank);
  uint64_t base = peers[rank].base;
  slot.source = reinterpret_cast<uint64_t>(source) - base;
  slot.target = reinterpret_cast<uint64_t>(target) - base;
  uint64_t use = slot.progress.load(std::memory_order_relaxed) / stages;
  reach(collective, rank, use * stages + 1);
}

/// Divides [0, count) into consecutive ranges, and calls part(first, number) for each range, where
/// `number` is the number of elements. If the `count` elements have at least parallelBytes bytes,
/// there is one range per worker. Otherwise there is only one range.
template <typename Part>
static void inParts(WorkerPool &pool, uint64_t count, uint64_t elementSize, Part part) {
  if (pool.size() == 1 || count * elementSize < parallelBytes)
    return part(0, count);
  pool.run([&](uint32_t worker) {
    uint64_t begin, end;
    WorkerPool::split(count, 4096, pool.size(), worker, begin, end);
    if (begin < end)
      part(begin, end - begin);
  });
}

void PeerMemory::gather(uint32_t collective, uint32_t rank, WorkerPool &pool) {
  const CollectiveKey &key = getKey(collective);
  const std::vector<uint32_t> &members = membersOf(collective, rank);
  uint64_t size = sizeOf(key.dtype), bytes = key.count * size;
  bool whole = key.hasOneSender();
  uint32_t sender =
      whole ? key.senderFor(collectives[collective].groups->index[rank], members.size()) : 0;
  std::byte *target = targetOf(collective, rank);
  inParts(pool, key.count, size, [&](uint64_t first, uint64_t count) {
    for (uint32_t j = 0; j < members.size(); ++j) {
      if (whole && j != sender)
        continue;
      const std::byte *from = sourceOf(collective, members[j]) + first * size;
      std::byte *to = target + (whole ? 0 : j * bytes) + first * size;
      if (from != to && count != 0)
        std::memcpy(to, from, count * size);
    }
  });
}

/// Adds up elements [first, first + count) of the sources of all members, and writes the sums to
/// `target`.
void PeerMemory::reduce(uint32_t collective, uint32_t rank, WorkerPool &pool, uint64_t first,
                        uint64_t count, std::byte *target) {
  const CollectiveKey &key = getKey(collective);
  const std::vector<uint32_t> &members = membersOf(collective, rank);
  std::vector<const std::byte *> &sources = pointers[rank - firstRank()];
  uint64_t size = sizeOf(key.dtype);
  uint32_t group = static_cast<uint32_t>(members.size());
  for (uint32_t j = 0; j < group; ++j)
    sources[j] =
        members[j] == collectives[collective].dropped ? nullptr : sourceOf(collective, members[j]);
  inParts(pool, count, size, [&](uint64_t begin, uint64_t elements) {
    reduceInOrder(key.dtype, key.reduction == fb::Reduction::avg, sources.data(), group,
                  (first + begin) * size, elements, target + begin * size);
  });
}

void PeerMemory::allReduceInPlace(uint32_t collective, uint32_t rank, WorkerPool &pool,
                                  uint64_t base) {
  const CollectiveKey &key = getKey(collective);
  const std::vector<uint32_t> &members = membersOf(collective, rank);
  uint64_t size = sizeOf(key.dtype), begin, end;
  uint32_t group = static_cast<uint32_t>(members.size()),
           own = collectives[collective].groups->index[rank];
  std::byte *target = targetOf(collective, rank);
  WorkerPool::split(key.count, 16, group, own, begin, end);
  if (begin < end)
    reduce(collective, rank, pool, begin, end - begin, target + begin * size);
  reach(collective, rank, base + 2);
  await(collective, rank, base + 2);
  for (uint32_t j = 0; j < group; ++j) {
    WorkerPool::split(key.count, 16, group, j, begin, end);
    if (j == own || begin >= end)
      continue;
    const std::byte *from = targetOf(collective, members[j]) + begin * size;
    std::byte *to = target + begin * size;
    inParts(pool, end - begin, size, [&](uint64_t first, uint64_t count) {
      std::memcpy(to + first * size, from + first * size, count * size);
    });
  }
}

void PeerMemory::finish(uint32_t collective, uint32_t rank, WorkerPool &pool) {
  const CollectiveKey &key = getKey(collective);
  CollectiveSlot &slot = slotOf(collective, rank);
  uint64_t base = slot.progress.load(std::memory_order_relaxed) / stages * stages,
           count = key.count;
  await(collective, rank, base + 1);
  switch (key.kind) {
  case fb::CollectiveKind::all_gather:
  case fb::CollectiveKind::broadcast:
  case fb::CollectiveKind::shift:
    gather(collective, rank, pool);
    break;
  case fb::CollectiveKind::reduce_scatter:
    reduce(collective, rank, pool, collectives[collective].groups->index[rank] * count, count,
           targetOf(collective, rank));
    break;
  case fb::CollectiveKind::all_reduce:
    if (slot.source == slot.target || count * sizeOf(key.dtype) >= parallelBytes)
      allReduceInPlace(collective, rank, pool, base);
    else
      reduce(collective, rank, pool, 0, count, targetOf(collective, rank));
    break;
  }
  reach(collective, rank, base + stages);
  await(collective, rank, base + stages);
}
