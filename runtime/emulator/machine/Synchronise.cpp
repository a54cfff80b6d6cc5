//===- Synchronise.cpp - Releases and acquires at addresses -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A `Published` contains the releases that have been made at one address. `released` contains the
// releases of the last cluster that released at this address. `foreign` contains rows of other
// clusters: their earlier releases at this address, and releases that the last cluster had acquired
// from them. A fence anywhere before a write is treated like a fence immediately before the write.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Synchronise.h"

using namespace fsdprt::emulate;

static void joinForeign(std::map<uint32_t, RowRef> &into, uint32_t group, const RowRef &row) {
  RowRef &known = into[group];
  if (!known) {
    known = row;
    return;
  }
  Released both;
  both.join(known);
  both.join(row);
  known = both.share();
}

/// Lets a lane acquire the releases that threads have made at an address.
static void acquire(Warp &warp, unsigned lane, Published &published) {
  Cluster &cluster = warp.block.cluster;
  for (const auto &[group, row] : published.foreign)
    if (group != cluster.number)
      joinForeign(cluster.foreign, group, row);
  if (published.group == cluster.number)
    cluster.clocks.acquire(warp.firstThread, LaneMask(1) << lane, published.released);
  else if (!published.released.isEmpty())
    joinForeign(cluster.foreign, published.group, published.released.share());
}

void fsdprt::emulate::strongRead(Warp &warp, unsigned lane, const Place &place, Order order) {
  auto &all = warp.block.cluster.grid.memory.published;
  auto known = all.find(place.bytes());
  if (known == all.end() || known->second.launch != warp.block.cluster.grid.memory.firstGroup)
    return;
  if (order == Order::Acquire || order == Order::Both)
    return acquire(warp, lane, known->second);
  if (warp.observed.empty())
    warp.observed.resize(warpSize);
  warp.observed[lane] = place.bytes();
}

void fsdprt::emulate::strongWrite(Warp &warp, unsigned lane, const Place &place, Order order) {
  bool releases = order == Order::Release || order == Order::Both || (warp.fenced >> lane & 1);
  if (!releases)
    return;
  Cluster &cluster = warp.block.cluster;
  Published &published = cluster.grid.memory.published[place.bytes()];
  if (published.launch != cluster.grid.memory.firstGroup)
    published = {};
  published.launch = cluster.grid.memory.firstGroup;
  if (published.group != cluster.number) {
    if (published.group && !published.released.isEmpty())
      joinForeign(published.foreign, published.group, published.released.share());
    published.group = cluster.number;
    published.released.clear();
  }
  for (const auto &[group, row] : cluster.foreign)
    joinForeign(published.foreign, group, row);
  cluster.clocks.release(warp.firstThread, LaneMask(1) << lane, published.released);
}

void fsdprt::emulate::fence(Warp &warp, LaneMask lanes) {
  warp.fenced |= lanes;
  if (warp.observed.empty())
    return;
  auto &all = warp.block.cluster.grid.memory.published;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    const uint8_t *&observed = warp.observed[lane];
    if (!(lanes >> lane & 1) || !observed)
      continue;
    if (auto known = all.find(observed); known != all.end())
      acquire(warp, lane, known->second);
    observed = nullptr;
  }
}
