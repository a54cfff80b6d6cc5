//===- AttentionOrder.cpp - Choice of the order of attention blocks --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Simulates a launch with each candidate order, and chooses the order with which the launch ends
// earliest. The candidates `sections` and `single` are tried before `pairs`, and smaller numbers of
// parts of the query heads are tried before larger numbers. A candidate replaces an earlier
// candidate only if its duration is shorter by more than the fraction `leastGain`. Each part needs
// memory, so larger numbers of parts are tried only as long as the best efficiency is below
// `goodEfficiency`.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Gpu/AttentionOrder.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr double leastGain = 0.01;
static constexpr double goodEfficiency = 0.9;
/// If a launch has more additions than this number, the simulation omits the additions and the
/// waits for them.
static constexpr int64_t mostAdditions = INT64_C(1) << 22;

/// Returns true if a bound of `range` contains a tree that satisfies `test`.
static bool contains(const TileRange &range, function_ref<bool(TileExpr)> test) {
  return llvm::any_of(ArrayRef{range.begin, range.fullBegin, range.fullEnd, range.end},
                      [&](const TileExpr &bound) { return bound.contains(test); });
}

static bool dependsOnData(const TileRange &range) {
  return contains(range, [](TileExpr e) {
    return e.kind() == TileExpr::Kind::Scalar || e.kind() == TileExpr::Kind::Opaque;
  });
}

static bool dependsOnHead(const TileRange &range) {
  return contains(range, [](TileExpr e) {
    return e.kind() == TileExpr::Kind::Symbol &&
           (e.asSymbol() == TileExpr::Symbol::Batch || e.asSymbol() == TileExpr::Symbol::Head);
  });
}

void BlockVisits::append(int64_t begin, int64_t end) {
  if (!ranges.empty() && begin <= ranges.back().end)
    ranges.back().end = std::max(ranges.back().end, end);
  else if (begin < end)
    ranges.push_back({begin, end});
}

int64_t BlockVisits::count() const {
  int64_t count = 0;
  for (const Range &range : ranges)
    count += range.end - range.begin;
  return count;
}

SmallVector<int64_t> BlockVisits::list() const {
  SmallVector<int64_t> blocks;
  for (const Range &range : ranges)
    for (int64_t block = range.begin; block < range.end; ++block)
      blocks.push_back(block);
  return blocks;
}

/// Returns the visits of one tile.
static BlockVisits getVisits(ArrayRef<TileRange> ranges, const TileSymbols<int64_t> &symbols) {
  BlockVisits visits;
  for (const TileRange &range : ranges) {
    visits.append(range.begin.evaluate(symbols), range.end.evaluate(symbols));
    visits.free +=
        std::max<int64_t>(range.fullEnd.evaluate(symbols) - range.fullBegin.evaluate(symbols), 0);
  }
  return visits;
}

std::vector<BlockVisits> fsdp::getVisits(ArrayRef<TileRange> ranges, int64_t extent, int64_t size) {
  DenseMap<Value, IntegerRange> scalars = findScalars(ranges);
  auto least = [&](Value value) { return scalars.lookup(value).lo; };
  auto largest = [&](Value value) { return scalars.lookup(value).hi; };
  std::vector<BlockVisits> visits;
  for (int64_t first = 0; first < extent; first += size) {
    TileSymbols<int64_t> symbols{first, std::min(first + size, extent), 0, 0, least};
    BlockVisits &own = visits.emplace_back(::getVisits(ranges, symbols));
    if (scalars.empty())
      continue;
    symbols.scalar = largest;
    BlockVisits others = ::getVisits(ranges, symbols), all;
    auto both = llvm::to_vector(llvm::concat<BlockVisits::Range>(own.ranges, others.ranges));
    llvm::sort(both, [](auto &x, auto &y) { return x.begin < y.begin; });
    for (const BlockVisits::Range &range : both)
      all.append(range.begin, range.end);
    all.free = std::min(own.free, others.free);
    own = std::move(all);
  }
  return visits;
}

bool fsdp::mayVisitFree(ArrayRef<TileRange> ranges, int64_t extent, int64_t size) {
  bool isUnknown = llvm::any_of(ranges, [](const TileRange &range) {
    return !(range.fullBegin == range.fullEnd) && (dependsOnData(range) || dependsOnHead(range));
  });
  return isUnknown || llvm::any_of(getVisits(ranges, extent, size),
                                   [](const BlockVisits &visits) { return visits.free > 0; });
}

BlockScheduler fsdp::scheduleQueries(const QueryOrder &order, ArrayRef<double> cycles,
                                     int64_t slots) {
  BlockScheduler scheduler(slots);
  Integers m;
  for (int64_t block = 0; block < order.blocks; ++block) {
    double sum = 0;
    for (int64_t round = 0, rounds = order.rounds(m, block); round < rounds; ++round)
      sum += cycles[order.tileAt(m, block, round).rowBlock];
    scheduler.add(sum);
  }
  return scheduler;
}

QueryOrder fsdp::chooseQueryOrder(int64_t heads, int64_t group, int64_t blocks,
                                  int64_t mostTogether, ArrayRef<double> cycles, int64_t slots) {
  QueryOrder order{heads, static_cast<int64_t>(cycles.size()), blocks, group};
  if (llvm::all_equal(cycles))
    return order;
  SmallVector<QueryOrder> candidates;
  for (int64_t together = std::min(std::max(mostTogether, group), heads); together >= group;
       --together)
    if (heads % together == 0 && together % group == 0) {
      order.together = together;
      candidates.push_back(order);
    }
  if (heads % 2 == 0 && blocks < order.tiles()) {
    order.pairs = true;
    candidates.push_back(order);
  }
  double least = 0;
  for (const QueryOrder &candidate : candidates) {
    double end = scheduleQueries(candidate, cycles, slots).end();
    if (least > 0 && end >= least * (1 - leastGain))
      continue;
    least = end;
    order = candidate;
  }
  return order;
}

namespace {
/// Simulates a launch of the backward with one order.
class KeyScheduler {
public:
  KeyScheduler(const KeyOrder &order, const KeyWork &work, int64_t slots);
  std::optional<BlockScheduler> run();

private:
  void addTurn(const KeyOrder::Place<int64_t> &place, bool isSecond);

  const KeyOrder &order;
  const KeyWork &work;
  BlockScheduler scheduler;
  /// Whether the simulation includes the additions to the gradients of queries.
  bool adds;
  /// Number of later blocks of keys that visit a block of queries, for each block of keys and each
  /// block of queries.
  std::vector<int64_t> later;
  /// Number of blocks of keys that visit each block of queries.
  std::vector<int64_t> visitors;
  std::vector<BlockStep> steps; ///< steps of the current block of threads
};
} // namespace

KeyScheduler::KeyScheduler(const KeyOrder &order, const KeyWork &work, int64_t slots)
    : order(order), work(work), scheduler(slots, work.addCycles, work.loadCycles) {
  adds = work.adds;
  int64_t visits = 0;
  for (const BlockVisits &own : work.visits)
    visits += own.count();
  adds &= visits * work.group * order.kvHeads <= mostAdditions;
  if (!adds)
    return;
  later.resize(order.keyBlocks * work.queryBlocks);
  visitors.resize(work.queryBlocks);
  for (int64_t key = order.keyBlocks - 1; key >= 0; --key) {
    llvm::copy(visitors, later.begin() + key * work.queryBlocks);
    for (int64_t block : work.visits[key].list())
      ++visitors[block];
  }
}

void KeyScheduler::addTurn(const KeyOrder::Place<int64_t> &place, bool isSecond) {
  const BlockVisits &visits = work.visits[place.keyBlock];
  int64_t heads = work.group / order.parts, count = visits.count();
  auto visited = static_cast<double>(count);
  steps.push_back({work.blockCycles});
  if (!adds) {
    auto free = static_cast<double>(visits.free);
    steps.push_back({static_cast<double>(heads) *
                     (free * work.freeCycles + (visited - free) * work.maskedCycles)});
    return;
  }
  // Assume that each visit of this block of keys takes the mean time of all its visits.
  double cycles = count ? work.maskedCycles + (work.freeCycles - work.maskedCycles) *
                                                  static_cast<double>(visits.free) / visited
                        : 0;
  SmallVector<int64_t> blocks = visits.list();
  if (isSecond)
    std::reverse(blocks.begin(), blocks.end());
  for (int64_t head = 0; head < heads; ++head) {
    int64_t number = place.kvHead * work.group + place.part * heads + head;
    for (int64_t block : blocks) {
      int64_t after = later[place.keyBlock * work.queryBlocks + block];
      int64_t before = isSecond ? visitors[block] - 1 - after : after;
      bool isLast = work.rounds && before == visitors[block] - 1;
      steps.push_back({cycles + (isLast ? work.roundCycles : 0), number * work.queryBlocks + block,
                       before, isLast});
    }
  }
  if (order.parts > 1)
    steps.push_back({work.partCycles,
                     (order.kvHeads * work.group) * work.queryBlocks +
                         place.kvHead * order.keyBlocks + place.keyBlock,
                     place.part});
}

std::optional<BlockScheduler> KeyScheduler::run() {
  Integers m;
  for (int64_t block = 0; block < order.blocks(); ++block) {
    steps.clear();
    for (int64_t turn = 0, turns = order.turns(m, block); turn < turns; ++turn)
      addTurn(order.placeAt(m, block, turn), turn == 1);
    if (!scheduler.add(steps))
      return std::nullopt;
  }
  return std::move(scheduler);
}

std::optional<BlockScheduler> fsdp::scheduleKeys(const KeyOrder &order, const KeyWork &work,
                                                 int64_t slots) {
  return KeyScheduler(order, work, slots).run();
}

KeyOrder fsdp::chooseKeyOrder(int64_t kvHeads, int64_t mostTogether, const KeyWork &work,
                              int64_t slots) {
  KeyOrder best;
  std::optional<BlockScheduler> least;
  auto consider = [&](const KeyOrder &order) {
    std::optional<BlockScheduler> schedule = scheduleKeys(order, work, slots);
    if (!schedule || (least && schedule->end() >= least->end() * (1 - leastGain)))
      return;
    least.emplace(std::move(*schedule));
    best = order;
  };
  for (int64_t parts = 1; parts <= work.group; ++parts) {
    if (work.group % parts != 0 || (least && least->efficiency() >= goodEfficiency) ||
        (parts > 1 && !work.adds))
      continue;
    for (bool other : {false, true}) {
      KeyOrder order{kvHeads, static_cast<int64_t>(work.visits.size()), parts};
      order.pairs = other && work.adds;
      order.reversed = other && !work.adds;
      if (order.pairs && kvHeads == 1)
        continue;
      consider(order);
      int64_t most = std::max<int64_t>(mostTogether / order.mostTurns(), 1);
      order.together = std::min(most, order.units());
      while (order.units() % order.together != 0)
        --order.together;
      if (order.together > 1)
        consider(order);
    }
  }
  return best;
}
