//===- VectorClocks.cpp - Order of accesses ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The join of two rows is a row whose elements are the larger elements of the two rows. A join is
// skipped if it is known that the join would change nothing.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/VectorClocks.h"
#include <algorithm>

using namespace fsdprt::emulate;

static void raise(Time *to, const Time *from, size_t count) {
  for (size_t i = 0; i < count; ++i)
    to[i] = to[i] < from[i] ? from[i] : to[i];
}

static void raise(Row &row, const Row &by) { raise(row.data(), by.data(), by.size()); }

/// Applies `change` to the row of each lane. Lanes that shared a row before share the changed row.
template <typename Change>
void VectorClocks::changeRows(uint32_t first, LaneMask lanes, Change change) {
  while (lanes) {
    RowRef old = rows[first + __builtin_ctz(lanes)];
    LaneMask having = 0;
    for (LaneMask rest = lanes; rest; rest &= rest - 1)
      having |= LaneMask(rows[first + __builtin_ctz(rest)] == old) << __builtin_ctz(rest);
    Row row = *old;
    change(row, having);
    RowRef changed = std::make_shared<const Row>(std::move(row));
    for (lanes &= ~having; having; having &= having - 1)
      rows[first + __builtin_ctz(having)] = changed;
  }
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

VectorClocks::VectorClocks(uint32_t threads)
    : times(threads, 1), rows(threads, std::make_shared<const Row>(2 * threads, 0)),
      owners(threads), forkTimes(threads) {
  for (uint32_t thread = 0; thread < threads; ++thread)
    owners[thread] = thread;
}

void VectorClocks::fork(uint32_t thread, uint32_t agent) {
  rows[agent] = rows[thread];
  owners[agent] = thread;
  forkTimes[agent] = times[thread];
  times[thread] = ++now;
}

Time VectorClocks::finish(uint32_t agent) {
  Time time = times[agent];
  times[agent] = ++now;
  return time;
}

void VectorClocks::learn(uint32_t first, LaneMask lanes, uint32_t agent, Time time) {
  changeRows(first, lanes,
             [&](Row &row, LaneMask) { row[agent] = row[agent] < time ? time : row[agent]; });
}

/// Collects the distinct rows of the threads of the warps. A row is stored with the index of its
/// thread, or with UINT32_MAX if several threads share the row.
void VectorClocks::collect(const std::vector<uint32_t> &warps,
                           std::vector<std::pair<RowRef, uint32_t>> &distinct) const {
  const Row *last = nullptr;
  for (uint32_t first : warps)
    for (uint32_t thread = first; thread < first + warpSize; ++thread) {
      if (rows[thread].get() == last) {
        distinct.back().second = UINT32_MAX;
        continue;
      }
      last = rows[thread].get();
      auto known = std::find_if(distinct.begin(), distinct.end(),
                                [&](const auto &each) { return each.first.get() == last; });
      if (known != distinct.end()) {
        std::rotate(known, known + 1, distinct.end());
        distinct.back().second = UINT32_MAX;
      } else {
        distinct.push_back({rows[thread], thread});
      }
    }
}

/// The row of `agent` becomes the element-wise minimum of the rows of the threads. A thread covers
/// its own accesses, but the thread's row does not contain the time of these accesses. If no other
/// thread shares the row, the thread's own time therefore replaces its element in the row. The last
/// result is stored and reused, because the rows are often the same for consecutive products.
void VectorClocks::gather(uint32_t agent, const std::vector<uint32_t> &warps) {
  std::vector<std::pair<RowRef, uint32_t>> distinct;
  collect(warps, distinct);
  owners[agent] = agent, forkTimes[agent] = 0;
  Gathered &known = gathered[{warps[0], warps.size()}];
  bool isShared = std::all_of(distinct.begin(), distinct.end(),
                              [](const auto &each) { return each.second == UINT32_MAX; });
  if (!isShared || known.distinct != distinct) {
    Row least(2 * times.size(), UINT32_MAX);
    for (const auto &[row, thread] : distinct) {
      Time own = thread == UINT32_MAX ? 0 : least[thread];
      for (size_t i = 0; i < least.size(); ++i)
        least[i] = least[i] < (*row)[i] ? least[i] : (*row)[i];
      if (thread != UINT32_MAX)
        least[thread] = own < times[thread] ? own : times[thread];
    }
    known = {std::move(distinct), std::make_shared<const Row>(std::move(least))};
  }
  rows[agent] = known.least;
}

void VectorClocks::release(uint32_t first, LaneMask lanes, Released &into) {
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

void VectorClocks::acquire(uint32_t first, LaneMask lanes, Released &from) {
  if (from.isEmpty())
    return;
  RowRef old, joined;
  for (; lanes; lanes &= lanes - 1) {
    RowRef &row = rows[first + __builtin_ctz(lanes)];
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

/// For each lane, makes two kinds of accesses visible to the async proxy: accesses that the row of
/// the lane covers, and accesses of the lane itself. Lanes that shared a row before share the new
/// row.
void VectorClocks::fenceProxy(uint32_t first, LaneMask lanes) {
  size_t count = times.size();
  changeRows(first, lanes, [&](Row &row, LaneMask having) {
    raise(row.data() + count, row.data(), count);
    for (; having; having &= having - 1) {
      uint32_t thread = first + __builtin_ctz(having);
      row[count + thread] = times[thread];
    }
  });
  // Advance the times of the lanes, so that the fence does not apply to their later accesses.
  ++now;
  for (; lanes; lanes &= lanes - 1)
    times[first + __builtin_ctz(lanes)] = now;
}
