//===- Local.cpp - Collectives between threads of one process ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See the header's drawing. Long copies and sums are split over the rank's workers;
// no element's value depends on the split.
//
//===----------------------------------------------------------------------===//

#include "collectives/Local.h"
#include "collectives/Reduce.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;

static constexpr uint32_t sliceMilliseconds = 20; // how long a waiter sleeps before it looks at the watch
static constexpr uint64_t parallelBytes = 64 << 10;

std::string Watch::whereabouts(uint32_t rank) const {
  const char *label = lives[rank].label.load(std::memory_order_relaxed);
  std::string text =
      format("rank %u (last seen at command %u", rank, lives[rank].command.load(std::memory_order_relaxed));
  if (label && *label)
    text += ", '" + printable(label) + "'";
  return text + ")";
}

LocalSite::LocalSite(const Mesh &mesh, CollectiveKey newKey) : key(std::move(newKey)), seats(mesh.ranks()) {
  for (uint32_t rank = 0; rank < seats.size(); ++rank) {
    Seat &seat = seats[rank];
    seat.members = mesh.group(rank, key.axes);
    seat.index = std::find(seat.members.begin(), seat.members.end(), rank) - seat.members.begin();
    seat.sources.resize(seat.members.size());
    if (seat.index == 0)
      seat.bell = std::make_unique<Bell>();
  }
}

void LocalCollectives::reach(LocalSite &site, uint32_t rank, uint64_t progress) {
  Seat &seat = site.seats[rank];
  seat.progress.store(progress, std::memory_order_release);
  if (seat.members.size() > 1)
    site.seats[seat.members[0]].bell->ring();
}

void LocalCollectives::reportMissing(const LocalSite &site, uint32_t rank, uint64_t progress) const {
  std::string missing;
  for (uint32_t member : site.seats[rank].members)
    if (site.seats[member].progress.load(std::memory_order_acquire) < progress)
      missing += (missing.empty() ? "" : ", ") + watch.whereabouts(member);
  failed("rank %u waited %g s at collective %u (%s%s%s%s) for %s, which made no progress", rank, watch.timeoutSeconds(),
         site.key.id, fb::EnumNameCollectiveKind(site.key.kind), site.key.label.empty() ? "" : " '",
         printable(site.key.label).c_str(), site.key.label.empty() ? "" : "'", missing.c_str());
}

void LocalCollectives::await(LocalSite &site, uint32_t rank, uint64_t progress) {
  Seat &seat = site.seats[rank];
  if (seat.members.size() == 1)
    return;
  auto allThere = [&] {
    for (uint32_t member : seat.members)
      if (site.seats[member].progress.load(std::memory_order_acquire) < progress)
        return false;
    return true;
  };
  Patience patience(watch);
  waitFor(*site.seats[seat.members[0]].bell, spins, sliceMilliseconds, allThere, [&] {
    if (watch.hasFailed())
      throw Abandoned();
    uint64_t beats = 0;
    for (uint32_t member : seat.members)
      if (site.seats[member].progress.load(std::memory_order_acquire) < progress)
        beats += watch.beats(member);
    if (patience.isOver(beats))
      reportMissing(site, rank, progress);
  });
}

void LocalCollectives::start(LocalSite &site, uint32_t rank, const std::byte *source, std::byte *target) {
  Seat &seat = site.seats[rank];
  seat.source = source;
  seat.target = target;
  uint64_t use = seat.progress.load(std::memory_order_relaxed) / LocalSite::stages;
  reach(site, rank, use * LocalSite::stages + 1);
}

/// Runs part(first, count) over [0, count) in elements, on all workers when there is enough to do.
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

void LocalCollectives::gather(LocalSite &site, Seat &seat, WorkerPool &pool) {
  uint64_t size = sizeOf(site.key.dtype), bytes = site.key.count * size;
  bool whole = site.key.kind == fb::CollectiveKind::broadcast;
  inParts(pool, site.key.count, size, [&](uint64_t first, uint64_t count) {
    for (uint32_t j = 0; j < seat.members.size(); ++j) {
      if (whole && j != site.key.root)
        continue;
      const std::byte *from = site.seats[seat.members[j]].source + first * size;
      std::byte *to = seat.target + (whole ? 0 : j * bytes) + first * size;
      if (from != to && count != 0)
        std::memcpy(to, from, count * size);
    }
  });
}

/// The sum of elements [first, first + count) of every member's source.
void LocalCollectives::reduce(LocalSite &site, Seat &seat, WorkerPool &pool, uint64_t first, uint64_t count,
                              std::byte *target) {
  uint64_t size = sizeOf(site.key.dtype);
  for (uint32_t j = 0; j < seat.members.size(); ++j)
    seat.sources[j] = seat.members[j] == site.dropped ? nullptr : site.seats[seat.members[j]].source;
  inParts(pool, count, size, [&](uint64_t begin, uint64_t elements) {
    reduceInOrder(site.key.dtype, site.key.reduction == fb::Reduction::avg, seat.sources.data(), seat.sources.size(),
                  (first + begin) * size, elements, target + begin * size);
  });
}

void LocalCollectives::allReduceInPlace(LocalSite &site, uint32_t rank, WorkerPool &pool, uint64_t base) {
  Seat &seat = site.seats[rank];
  uint64_t size = sizeOf(site.key.dtype), begin, end;
  uint32_t group = seat.members.size();
  WorkerPool::split(site.key.count, 16, group, seat.index, begin, end);
  if (begin < end)
    reduce(site, seat, pool, begin, end - begin, seat.target + begin * size);
  reach(site, rank, base + 2);
  await(site, rank, base + 2);
  for (uint32_t j = 0; j < group; ++j) {
    WorkerPool::split(site.key.count, 16, group, j, begin, end);
    if (j == seat.index || begin >= end)
      continue;
    const std::byte *from = site.seats[seat.members[j]].target + begin * size;
    std::byte *to = seat.target + begin * size;
    inParts(pool, end - begin, size,
            [&](uint64_t first, uint64_t count) { std::memcpy(to + first * size, from + first * size, count * size); });
  }
}

void LocalCollectives::complete(LocalSite &site, uint32_t rank, WorkerPool &pool) {
  Seat &seat = site.seats[rank];
  uint64_t base = seat.progress.load(std::memory_order_relaxed) / LocalSite::stages * LocalSite::stages;
  await(site, rank, base + 1);
  uint64_t count = site.key.count;
  if (rank == 0) {
    bool grows = site.key.kind == fb::CollectiveKind::all_gather || site.key.kind == fb::CollectiveKind::reduce_scatter;
    exchanged[static_cast<size_t>(site.key.kind)] +=
        count * sizeOf(site.key.dtype) * (grows ? seat.members.size() : 1);
  }
  switch (site.key.kind) {
  case fb::CollectiveKind::all_gather:
  case fb::CollectiveKind::broadcast: gather(site, seat, pool); break;
  case fb::CollectiveKind::reduce_scatter: reduce(site, seat, pool, seat.index * count, count, seat.target); break;
  case fb::CollectiveKind::all_reduce:
    if (seat.source == seat.target || count * sizeOf(site.key.dtype) >= parallelBytes)
      allReduceInPlace(site, rank, pool, base);
    else
      reduce(site, seat, pool, 0, count, seat.target);
    break;
  }
  reach(site, rank, base + LocalSite::stages);
  await(site, rank, base + LocalSite::stages);
}
