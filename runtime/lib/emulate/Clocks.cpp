//===- Clocks.cpp - Which accesses are ordered ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Joins are element-wise maxima; rows that were joined or acquired just before are not looked at again.
//
//===----------------------------------------------------------------------===//

#include "emulate/Clocks.h"

using namespace fsdprt::emulate;

static void raise(Row &row, const Row &by) {
  Time *to = row.data();
  const Time *from = by.data();
  for (size_t i = 0, size = by.size(); i < size; ++i)
    to[i] = to[i] < from[i] ? from[i] : to[i];
}

void Released::join(const RowRef &other) {
  if (other == last)
    return;
  last = other;
  shared = nullptr;
  if (row.empty())
    row = *other;
  else
    raise(row, *other);
}

void Released::join(const Released &other) {
  if (other.isEmpty())
    return;
  shared = nullptr;
  if (row.empty())
    row = other.row;
  else
    raise(row, other.row);
}

const RowRef &Released::share() {
  if (!shared)
    shared = std::make_shared<const Row>(row);
  return shared;
}

Clocks::Clocks(uint32_t threads)
    : times(threads, 1), rows(threads, std::make_shared<const Row>(2 * threads, 0)), owners(threads), forkTimes(threads) {
  for (uint32_t thread = 0; thread < threads; ++thread)
    owners[thread] = thread;
}

void Clocks::fork(uint32_t thread, uint32_t agent) {
  rows[agent] = rows[thread];
  owners[agent] = thread;
  forkTimes[agent] = times[thread];
  times[thread] = ++now;
}

Time Clocks::finish(uint32_t agent) {
  Time time = times[agent];
  times[agent] = ++now;
  return time;
}

void Clocks::learn(uint32_t thread, uint32_t agent, Time time) {
  if ((*rows[thread])[agent] >= time)
    return;
  Row row = *rows[thread];
  row[agent] = time;
  rows[thread] = std::make_shared<const Row>(std::move(row));
}

void Clocks::release(uint32_t first, LaneMask lanes, Released &into) {
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (lanes >> lane & 1) {
      into.join(rows[first + lane]);
    }
  ++now;
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (lanes >> lane & 1) {
      into.atLeast(first + lane, times[first + lane]);
      times[first + lane] = now;
    }
}

void Clocks::acquire(uint32_t first, LaneMask lanes, Released &from) {
  if (from.isEmpty())
    return;
  RowRef old, joined;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    if (!(lanes >> lane & 1))
      continue;
    RowRef &row = rows[first + lane];
    if (row == from.share())
      continue;
    if (row != old) {
      old = row;
      Row both = *old;
      raise(both, from.times());
      joined = both == from.times() ? from.share() : std::make_shared<const Row>(std::move(both));
    }
    row = joined;
  }
}

void Clocks::fenceProxy(uint32_t first, LaneMask lanes) {
  size_t count = times.size();
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    if (!(lanes >> lane & 1))
      continue;
    uint32_t thread = first + lane;
    Row row = *rows[thread];
    for (size_t i = 0; i < count; ++i)
      row[count + i] = row[count + i] < row[i] ? row[i] : row[count + i];
    row[count + thread] = times[thread];
    rows[thread] = std::make_shared<const Row>(std::move(row));
  }
  // What comes later is later than the fence.
  ++now;
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (lanes >> lane & 1)
      times[first + lane] = now;
}
