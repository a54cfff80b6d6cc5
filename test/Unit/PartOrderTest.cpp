//===- PartOrderTest.cpp - Unequal parts of a reduced dimension -----------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Blocks process every step of every tile once. The parts of a tile have consecutive numbers and
// ascending steps, so that adding their sums in order adds the steps in order.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Gpu/PartOrder.h"
#include "gtest/gtest.h"
#include <map>

using namespace mlir::fsdp;

namespace {
struct Range {
  int64_t first, steps;
};
/// The ranges of steps by tile and number of the part.
using Parts = std::map<std::pair<int64_t, int64_t>, Range>;

Parts collect(const PartOrder &order) {
  Integers m;
  Parts parts;
  for (int64_t block = 0; block < order.blocks(); ++block) {
    int64_t before = 0;
    for (int64_t tile = order.firstTile(m, block); tile < order.endTile(m, block); ++tile) {
      auto turn = order.turnAt(m, block, tile);
      EXPECT_EQ(turn.before, before);
      EXPECT_GE(turn.steps, 1);
      EXPECT_TRUE(parts.insert({{tile, turn.part}, {turn.firstStep, turn.steps}}).second);
      before += turn.steps;
    }
    EXPECT_GE(before, 1);
  }
  return parts;
}

void check(const PartOrder &order) {
  Integers m;
  int64_t tile = -1, part = 0, step = order.steps, least = order.steps, most = 0;
  Parts parts = collect(order);
  auto endTile = [&] {
    EXPECT_EQ(step, order.steps);
    if (tile < 0)
      return;
    EXPECT_EQ(order.partsOf(m, tile), part);
    least = std::min(least, part);
    most = std::max(most, part);
  };
  for (auto [place, range] : parts) {
    if (place.first != tile) {
      endTile();
      EXPECT_EQ(place.first, tile + 1);
      tile = place.first;
      part = step = 0;
    }
    EXPECT_EQ(place.second, part++);
    EXPECT_EQ(range.first, step);
    step += range.steps;
  }
  endTile();
  EXPECT_EQ(tile + 1, order.tiles);
  EXPECT_EQ(order.leastParts(), least);
  EXPECT_EQ(order.mostParts(), most);
  EXPECT_EQ(order.allParts(), static_cast<int64_t>(parts.size()));
}
} // namespace

TEST(PartOrderTest, EveryStepIsProcessedOnce) {
  for (int64_t tiles : {1, 2, 7, 36})
    for (int64_t parts : {1, 2, 3})
      for (int64_t partSteps : {1, 4})
        for (int64_t tail : {1, 2, 5, 16})
          for (int64_t helpers : {1, 2, 3, 13, 60}) {
            PartOrder order{tiles, parts * partSteps + tail, parts, partSteps,
                            std::min(helpers, tiles * tail)};
            SCOPED_TRACE(testing::Message()
                         << tiles << " tiles, " << parts << " parts of " << partSteps << ", "
                         << tail << " in tails, " << helpers << " helpers");
            check(order);
          }
}

// The ranges of helpers differ by at most one step.
TEST(PartOrderTest, HelpersHaveEqualWork) {
  PartOrder order{36, 128, 1, 70, 30};
  Integers m;
  int64_t least = order.tiles * order.tail(), most = 0;
  for (int64_t block = order.owners(); block < order.blocks(); ++block) {
    int64_t steps = 0;
    for (int64_t tile = order.firstTile(m, block); tile < order.endTile(m, block); ++tile)
      steps += order.turnAt(m, block, tile).steps;
    least = std::min(least, steps);
    most = std::max(most, steps);
  }
  EXPECT_EQ(least, 36 * 58 / 30);
  EXPECT_EQ(most, least + 1);
}
