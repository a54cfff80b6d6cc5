//===- Packing.cpp - Offsets for buffers with lifetimes ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Optimal packing of intervals that are all known in advance (dynamic storage allocation) is
// NP-hard. A greedy algorithm therefore runs several times, and the best packing is kept.
//
//   offset ^      | b  |
//          |   | a    |      | c |
//          +--------------------------> moments
//
// 0. Drop moments at which no interval begins. The packing then does not depend on commands that
//    need no new buffer, such as waits.
// 1. Sort the intervals by size x lifetime, size or lifetime (largest first), or by start (earliest
//    first). Two further orders sort by contention, which is the peak of the live bytes during the
//    lifetime. These two orders sort intervals of equal contention by size x lifetime or by
//    lifetime. Intervals that are still equal are sorted by start and then by index.
// 2. For each order, place one interval after another in a gap between those placed intervals that
//    overlap the interval in time. Use the lowest gap that is large enough (first fit) or the
//    smallest gap that is large enough (best fit).
// 3. Keep the smallest packing. Stop as soon as the size of this packing equals the lower bound, or
//    is at most `enough`.
// 4. If step 3 has not stopped at a packing, improve each order as follows. Move the interval with
//    the highest end offset to an earlier, pseudo-random position in the order. Undo the move if
//    the packing becomes larger. Make at most 1000 moves, and fewer for many intervals. Intervals
//    before the moved one keep their offsets.
//
// The orders by contention lead to optimal packings for large models in which few moments are near
// the peak of the live bytes. The other orders are better if many moments are near the peak. The
// time is O(n^2) for each combination of order and fit, and for each move of step 4. The result is
// deterministic.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Packing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <limits>
#include <map>
#include <random>

using namespace mlir::fsdp;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::SmallVectorImpl;
using llvm::StringRef;

static int64_t roundUp(int64_t bytes) { return llvm::alignTo(bytes, bufferAlignment); }

int64_t mlir::fsdp::getLiveBytes(ArrayRef<Interval> intervals, int64_t *moment) {
  std::map<int64_t, int64_t> changes;
  for (const Interval &interval : intervals) {
    changes[interval.first] += roundUp(interval.bytes);
    changes[interval.last + 1] -= roundUp(interval.bytes);
  }
  int64_t live = 0, most = 0;
  for (auto [when, change] : changes) {
    live += change;
    if (live <= most)
      continue;
    most = live;
    if (moment)
      *moment = when;
  }
  return most;
}

namespace {

/// The intervals to which an offset has been assigned. `placed` lists them with the lowest offset
/// first.
class Arena {
public:
  Arena(ArrayRef<Interval> intervals, bool tightest) : intervals(intervals), tightest(tightest) {}

  /// Places the intervals of `order` at known offsets.
  void restore(ArrayRef<unsigned> order, ArrayRef<int64_t> offsets) {
    SmallVector<std::pair<int64_t, unsigned>> sorted;
    for (auto [position, index] : llvm::enumerate(order))
      if (intervals[index].bytes > 0)
        sorted.push_back({offsets[index], position});
    llvm::sort(sorted);
    for (auto [offset, position] : sorted)
      append(placed.end(), order[position], offset);
  }

  /// Places an interval and returns its offset.
  int64_t place(unsigned index) {
    int64_t offset = findOffset(intervals[index]);
    append(llvm::upper_bound(placed, offset,
                             [](int64_t o, const Placed &other) { return o < other.offset; }),
           index, offset);
    return offset;
  }

  int64_t getTop() const { return top; }

private:
  struct Placed {
    int64_t offset, end;
    Interval interval;
  };

  void append(Placed *position, unsigned index, int64_t offset) {
    int64_t end = offset + roundUp(intervals[index].bytes);
    top = std::max(top, end);
    placed.insert(position, {offset, end, intervals[index]});
  }

  /// Considers the gaps between those placed intervals that overlap `interval` in time. Returns the
  /// offset of the lowest or, if `tightest` is true, of the smallest gap that is large enough. The
  /// gap above the highest of these intervals has no upper end.
  int64_t findOffset(const Interval &interval) const {
    int64_t bytes = roundUp(interval.bytes), alignment = getBufferAlignment(interval.bytes);
    int64_t end = 0, best = -1, bestGap = std::numeric_limits<int64_t>::max();
    for (const Placed &other : placed) {
      if (!other.interval.meets(interval))
        continue;
      int64_t gap = other.offset - end;
      if (bytes <= gap && gap < bestGap) { // few gaps need the division of alignTo()
        int64_t start = llvm::alignTo(end, alignment);
        if (start + bytes <= other.offset) {
          best = start;
          bestGap = gap;
          if (!tightest)
            return best;
        }
      }
      end = std::max(end, other.end);
    }
    return best >= 0 ? best : llvm::alignTo(end, alignment);
  }

  ArrayRef<Interval> intervals;
  bool tightest;
  SmallVector<Placed, 0> placed;
  int64_t top = 0;
};

/// Properties of an interval that are sort keys of the orders.
struct Weights {
  double bytes, lifetime, contention, begin;
};

struct Order {
  const char *name;
  std::pair<double, double> (*key)(const Weights &);
};

} // namespace

static const Order orders[] = {
    {"contention, size x lifetime",
     [](const Weights &w) { return std::make_pair(w.contention, w.bytes * w.lifetime); }},
    {"contention, lifetime",
     [](const Weights &w) { return std::make_pair(w.contention, w.lifetime); }},
    {"size x lifetime", [](const Weights &w) { return std::make_pair(w.bytes * w.lifetime, 0.0); }},
    {"size", [](const Weights &w) { return std::make_pair(w.bytes, 0.0); }},
    {"lifetime", [](const Weights &w) { return std::make_pair(w.lifetime, w.bytes); }},
    {"beginning", [](const Weights &w) { return std::make_pair(-w.begin, w.lifetime); }},
};

static SmallVector<Weights> weigh(ArrayRef<Interval> intervals) {
  // Compute the live bytes after each moment at which they change.
  std::map<int64_t, int64_t> changes, live;
  for (const Interval &interval : intervals) {
    changes[interval.first] += roundUp(interval.bytes);
    changes[interval.last + 1] -= roundUp(interval.bytes);
  }
  int64_t sum = 0;
  for (auto [when, change] : changes)
    live[when] = sum += change;
  SmallVector<Weights> weights;
  for (const Interval &interval : intervals) {
    int64_t most = 0;
    for (auto moment = live.find(interval.first);
         moment != live.end() && moment->first <= interval.last; ++moment)
      most = std::max(most, moment->second);
    weights.push_back({double(interval.bytes), double(interval.last - interval.first + 1),
                       double(most), double(interval.first)});
  }
  return weights;
}

/// Runs steps 2 and 3 for one order and one fit. The first `kept` intervals of the order keep their
/// `offsets`. Returns false as soon as the packing takes more than `most` bytes. If the packing is
/// smaller than `result`, stores the packing in `result`.
static bool tryOrder(ArrayRef<Interval> intervals, ArrayRef<unsigned> order, bool tightest,
                     StringRef method, Packing &result, SmallVectorImpl<int64_t> &offsets,
                     size_t kept, int64_t most) {
  Arena arena(intervals, tightest);
  arena.restore(order.take_front(kept), offsets);
  for (unsigned index : order.drop_front(kept)) {
    if (intervals[index].bytes > 0)
      offsets[index] = arena.place(index);
    if (arena.getTop() > most)
      return false;
  }
  if (arena.getTop() >= result.bytes)
    return true;
  result.bytes = arena.getTop();
  result.offsets.assign(offsets.begin(), offsets.end());
  result.method = method;
  return true;
}

/// Runs step 0.
static SmallVector<Interval> dropIdleMoments(ArrayRef<Interval> intervals) {
  SmallVector<int64_t> begins;
  for (const Interval &interval : intervals)
    begins.push_back(interval.first);
  llvm::sort(begins);
  begins.erase(llvm::unique(begins), begins.end());
  auto count = [&](int64_t moment) {
    return llvm::upper_bound(begins, moment) - begins.begin() - 1;
  };
  SmallVector<Interval> dense;
  for (const Interval &interval : intervals)
    dense.push_back({interval.bytes, count(interval.first), count(interval.last)});
  return dense;
}

/// Runs step 4, beginning with `order`, until the packing takes at most `enough` bytes.
static void amend(ArrayRef<Interval> intervals, SmallVector<unsigned> order, bool tightest,
                  int64_t enough, Packing &result) {
  // The limits on work and on moves keep the time below a second.
  static constexpr int64_t work = 8'000'000, mostTimes = 1000;
  int64_t n = intervals.size(), times = std::min(mostTimes, work / std::max<int64_t>(1, n * n));
  if (times == 0) // without moves, the packing of the order is known
    return;
  // std::minstd_rand generates the same numbers on every platform.
  std::minstd_rand draw;
  constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();
  SmallVector<int64_t> offsets(n, 0), tried;
  tryOrder(intervals, order, tightest, "amended", result, offsets, /*kept=*/0, unlimited);
  auto reach = [&](unsigned index) { return offsets[index] + roundUp(intervals[index].bytes); };
  auto isLower = [&](unsigned a, unsigned b) { return reach(a) < reach(b); };
  for (int64_t time = 0; time < times && result.bytes > enough; ++time) {
    auto highest = llvm::max_element(order, isLower);
    int64_t height = reach(*highest);
    auto to = order.begin() + draw() % (highest - order.begin() + 1);
    std::rotate(to, highest, highest + 1);
    tried = offsets;
    if (tryOrder(intervals, order, tightest, "amended", result, offsets, to - order.begin(),
                 height))
      continue;
    std::rotate(to, to + 1, highest + 1);
    offsets = tried;
  }
}

Packing mlir::fsdp::packIntervals(ArrayRef<Interval> given, int64_t enough) {
  SmallVector<Interval> intervals = dropIdleMoments(given);
  Packing result;
  result.lowerBound = getLiveBytes(intervals);
  bool cannotFit = enough > 0 && enough < result.lowerBound;
  enough = std::max(enough, result.lowerBound);
  result.bytes = std::numeric_limits<int64_t>::max();
  SmallVector<Weights> weights = weigh(intervals);
  SmallVector<std::pair<SmallVector<unsigned>, bool>> starts;
  for (const Order &order : orders) {
    auto sorted = llvm::to_vector(llvm::seq<unsigned>(0, intervals.size()));
    llvm::sort(sorted, [&](unsigned a, unsigned b) {
      auto keyA = order.key(weights[a]), keyB = order.key(weights[b]);
      return keyA != keyB
                 ? keyA > keyB
                 : std::make_pair(intervals[a].first, a) < std::make_pair(intervals[b].first, b);
    });
    for (bool tightest : {false, true}) {
      SmallVector<int64_t> offsets(intervals.size(), 0);
      tryOrder(intervals, sorted, tightest, order.name, result, offsets, /*kept=*/0, result.bytes);
      starts.push_back({sorted, tightest});
      if (result.bytes <= enough)
        return result;
    }
  }
  if (!cannotFit)
    for (auto &[order, tightest] : starts)
      amend(intervals, order, tightest, enough, result);
  return result;
}
