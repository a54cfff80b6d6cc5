//===- AttentionOrderTest.cpp - Order of the blocks of attention kernels --===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Orders process every tile once and wait for earlier blocks only. With the tiles of the kernels
// for sm_90a, and clocks of their products, all multiprocessors are busy for at least 95 % of the
// time. (test/Codegen/Gpu/attention-balance.test checks the same for the kernels themselves.)
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Gpu/AttentionOrder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <set>

using namespace mlir;
using namespace mlir::fsdp;

namespace {
constexpr int64_t multiprocessors = 132;

struct Heads {
  int64_t batch, heads, kvHeads, length, dim;
};

/// The shapes of benchmarks: 16,384 tokens with 2,048 columns of heads, shared heads, and the
/// layers of GPT-2 and of two Llamas.
const Heads shapes[] = {
    {8, 32, 32, 2048, 64},  {4, 32, 32, 4096, 64},  {2, 32, 32, 8192, 64},  {1, 32, 32, 16384, 64},
    {8, 16, 16, 2048, 128}, {4, 16, 16, 4096, 128}, {2, 16, 16, 8192, 128}, {1, 16, 16, 16384, 128},
    {1, 64, 8, 2048, 128},  {1, 64, 8, 4096, 128},  {1, 64, 8, 8192, 128},  {1, 64, 8, 16384, 128},
    {4, 32, 4, 2048, 64},   {8, 12, 12, 2048, 64},  {1, 32, 8, 8192, 128},  {2, 32, 8, 4096, 128}};

const std::string causal = "%keep = arith.cmpi sge, %i, %j : index\n";
/// The last 512 keys.
const std::string window = "%c = arith.constant 512 : index\n%far = arith.subi %i, %j : index\n"
                           "%near = arith.cmpi slt, %far, %c : index\n"
                           "%past = arith.cmpi sge, %i, %j : index\n"
                           "%keep = arith.andi %near, %past : i1\n";

/// The ranges of a mask for `length` queries and keys.
struct Tiles {
  Tiles(int64_t length, const std::string &mask) {
    context.loadDialect<FSDPDialect, func::FuncDialect, arith::ArithDialect>();
    std::string q = "tensor<1x1x" + std::to_string(length) + "x8xbf16>",
                lse = "tensor<1x1x" + std::to_string(length) + "xf32>";
    std::string text = "func.func @f(%q: " + q + ") {\n%o, %l = fsdp.attention %q, %q, %q scale " +
                       "1.0 : " + q + ", " + q + ", " + q + " -> " + q + ", " + lse;
    if (!mask.empty())
      text += " mask_mod(%b: index, %h: index, %i: index, %j: index) {\n" + mask +
              "fsdp.yield %keep : i1\n}";
    module = parseSourceString<ModuleOp>(text + "\nreturn\n}\n", ParserConfig(&context));
    module->walk([&](AttentionOp op) { tiles.emplace(op); });
  }
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::optional<AttentionTiles> tiles;
};

double visited(const BlockVisits &visits) { return static_cast<double>(visits.count()); }

/// Cycles of the tiles of a head: the products of a block of keys, and as much for a tile.
std::vector<double> cyclesOf(const Heads &heads, const std::string &mask, int64_t rows,
                             int64_t cols) {
  std::vector<double> cycles;
  Tiles tiles(heads.length, mask);
  double products = static_cast<double>(rows * cols * heads.dim * 2) / 2048;
  for (const BlockVisits &visits : getVisits(tiles.tiles->getKeyTiles(cols), heads.length, rows))
    cycles.push_back(products * (visited(visits) + 1));
  return cycles;
}

KeyWork workOf(const Heads &heads, const std::string &mask) {
  constexpr int64_t keys = 128;
  int64_t queries = heads.dim == 64 ? 128 : 64;
  KeyWork work;
  work.visits =
      getVisits(Tiles(heads.length, mask).tiles->getRowTiles(queries), heads.length, keys);
  work.queryBlocks = heads.length / queries;
  work.group = heads.heads / heads.kvHeads;
  work.freeCycles = work.maskedCycles = 3300;
  work.blockCycles = 2500;
  work.partCycles = 3000;
  work.addCycles = 2000;
  return work;
}

std::string nameOf(const Heads &heads) {
  std::string text;
  llvm::raw_string_ostream(text) << heads.batch << "x" << heads.heads << "/" << heads.kvHeads << " "
                                 << heads.length << "x" << heads.dim;
  return text;
}

/// Heads whose keys and values fit 32 MiB.
int64_t togetherOf(const Heads &heads) {
  return std::max<int64_t>((INT64_C(32) << 20) / (heads.length * heads.dim * 4), 1) *
         (heads.heads / heads.kvHeads);
}
} // namespace

//===----------------------------------------------------------------------===//
// List scheduling
//===----------------------------------------------------------------------===//

TEST(BlockSchedulerTest, BlocksStartInOrderWhenASlotIsFree) {
  BlockScheduler scheduler(2);
  for (double cycles : {4, 2, 3, 1})
    scheduler.add(cycles);
  EXPECT_EQ(scheduler.end(), 5);
  EXPECT_EQ(scheduler.efficiency(), 1);
  scheduler.add(5);
  EXPECT_EQ(scheduler.end(), 10);
  EXPECT_EQ(scheduler.efficiency(), 0.75);
}

// Both blocks add to sum 0. The second one waits for the first one's addition before its own, and
// cannot hand over its next values before.
TEST(BlockSchedulerTest, AdditionsWaitForTheirPredecessors) {
  BlockScheduler scheduler(2, /*addCycles=*/3);
  EXPECT_TRUE(scheduler.add({{10, 0, 0}, {10, 1, 0}}));
  EXPECT_EQ(scheduler.end(), 23);
  EXPECT_TRUE(scheduler.add({{1, 0, 1}, {1, 1, 1}}));
  EXPECT_EQ(scheduler.end(), 26);
  EXPECT_EQ(scheduler.busy(), 23 + 7);
  EXPECT_EQ(scheduler.waits(), 26 - 7);
}

// The second block loads sum 0 after the first one's addition, during its own step, and the sum 1,
// which no other block adds to, without a load.
TEST(BlockSchedulerTest, TheLastStepLoadsItsSum) {
  BlockScheduler scheduler(2, /*addCycles=*/3, /*loadCycles=*/2);
  EXPECT_TRUE(scheduler.add({{10, 0, 0}}));
  EXPECT_EQ(scheduler.end(), 13);
  EXPECT_TRUE(scheduler.add({{1, 0, 1, /*isLast=*/true}, {4, 1, 0, /*isLast=*/true}}));
  EXPECT_EQ(scheduler.end(), 19);
  EXPECT_EQ(scheduler.busy(), 13 + 6);
  EXPECT_EQ(scheduler.waits(), 19 - 6);
  // A step that is longer than the wait and the load hides both.
  EXPECT_TRUE(scheduler.add({{1, 2, 0}}));
  EXPECT_TRUE(scheduler.add({{30, 2, 1, /*isLast=*/true}}));
  EXPECT_EQ(scheduler.waits(), 19 - 6);
}

TEST(BlockSchedulerTest, RefusesToWaitForALaterBlock) {
  BlockScheduler scheduler(2);
  EXPECT_FALSE(scheduler.add({{1, 0, 1}}));
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

TEST(AttentionOrderTest, EveryTileIsProcessedOnce) {
  Integers m;
  for (int64_t blocks : {1, 7, 24, 36})
    for (int64_t together : {1, 2, 3, 12})
      for (bool pairs : {false, true}) {
        QueryOrder order{12, 3, blocks, together, pairs};
        std::set<std::pair<int64_t, int64_t>> seen;
        for (int64_t block = 0; block < blocks; ++block)
          for (int64_t round = 0; round < order.rounds(m, block); ++round) {
            auto tile = order.tileAt(m, block, round);
            EXPECT_TRUE(seen.insert({tile.head, tile.rowBlock}).second);
          }
        EXPECT_EQ(static_cast<int64_t>(seen.size()), order.tiles());
        EXPECT_EQ(seen.rbegin()->first, 11);
        EXPECT_EQ(seen.begin()->second, 0);
      }
}

TEST(AttentionOrderTest, EveryBlockOfKeysIsProcessedOnceByEachPart) {
  Integers m;
  for (int64_t heads : {1, 2, 5, 6})
    for (int64_t parts : {1, 3})
      for (bool pairs : {false, true}) {
        KeyOrder order{heads, 7, parts, pairs};
        for (order.together = 1; order.together <= order.units(); ++order.together) {
          if (order.units() % order.together != 0)
            continue;
          std::set<std::array<int64_t, 3>> seen;
          for (int64_t block = 0; block < order.blocks(); ++block)
            for (int64_t turn = 0; turn < order.turns(m, block); ++turn) {
              auto place = order.placeAt(m, block, turn);
              EXPECT_TRUE(place.kvHead < heads && place.keyBlock < 7 && place.part < parts);
              EXPECT_TRUE(seen.insert({place.part, place.kvHead, place.keyBlock}).second);
            }
          EXPECT_EQ(static_cast<int64_t>(seen.size()), heads * 7 * parts);
        }
      }
}

// Whatever the mask, no block waits for a later one.
TEST(AttentionOrderTest, BlocksWaitForEarlierOnes) {
  for (const std::string &mask : {std::string(), causal, window})
    for (int64_t kvHeads : {1, 3, 4})
      for (int64_t parts : {1, 2, 4})
        for (bool pairs : {false, true}) {
          KeyWork work = workOf({1, 4 * kvHeads, kvHeads, 2048, 128}, mask);
          for (bool together : {false, true}) {
            KeyOrder order{kvHeads, 16, parts, pairs};
            order.together = together ? order.units() : 1;
            for (int64_t slots : {1, 5, 132})
              EXPECT_TRUE(scheduleKeys(order, work, slots));
          }
        }
}

//===----------------------------------------------------------------------===//
// Balance
//===----------------------------------------------------------------------===//

TEST(AttentionOrderTest, ForwardIsBalanced) {
  for (const Heads &heads : shapes)
    for (const std::string &mask : {std::string(), causal}) {
      int64_t rows = heads.dim == 64 && mask.empty() ? 192 : 128,
              cols = heads.dim == 128 && mask.empty() ? 176 : 128;
      std::vector<double> cycles = cyclesOf(heads, mask, rows, cols);
      QueryOrder order =
          chooseQueryOrder(heads.batch * heads.heads, heads.heads / heads.kvHeads, multiprocessors,
                           togetherOf(heads), cycles, multiprocessors);
      EXPECT_GE(scheduleQueries(order, cycles, multiprocessors).efficiency(), 0.95)
          << nameOf(heads) << " " << mask;
    }
}

// Without a mask, all blocks of keys of a head begin with the same queries. Their first additions
// delay those of few heads by a few percent more.
TEST(AttentionOrderTest, BackwardIsBalanced) {
  for (const Heads &heads : shapes)
    for (const std::string &mask : {std::string(), causal}) {
      KeyWork work = workOf(heads, mask);
      int64_t together = mask.empty() ? 16 : togetherOf(heads) / work.group / 2;
      KeyOrder order = chooseKeyOrder(heads.batch * heads.kvHeads, std::max<int64_t>(together, 1),
                                      work, multiprocessors);
      std::optional<BlockScheduler> schedule = scheduleKeys(order, work, multiprocessors);
      ASSERT_TRUE(schedule);
      EXPECT_GE(schedule->efficiency(), mask.empty() ? 0.93 : 0.95) << nameOf(heads) << " " << mask;
      work.addCycles = 0;
      EXPECT_GE(scheduleKeys(order, work, multiprocessors)->efficiency(), 0.95)
          << nameOf(heads) << " " << mask;
    }
}

// With few kv heads, blocks are too few for all multiprocessors, unless query heads are divided.
TEST(AttentionOrderTest, PartsOfSharedHeadsFillTheMultiprocessors) {
  KeyWork work = workOf({1, 64, 8, 2048, 128}, causal);
  EXPECT_LT(scheduleKeys({8, 16, 1, true}, work, multiprocessors)->efficiency(), 0.5);
  KeyOrder order = chooseKeyOrder(8, 1, work, multiprocessors);
  EXPECT_EQ(order.parts, 2);
  EXPECT_TRUE(order.pairs);
}

// The model shows what simpler orders lose.
TEST(AttentionOrderTest, SingleBlocksOfCausalAttentionAreUnbalanced) {
  KeyWork work = workOf({1, 64, 8, 8192, 128}, causal);
  EXPECT_LT(scheduleKeys({8, 64}, work, multiprocessors)->efficiency(), 0.8);
  std::vector<double> cycles = cyclesOf({2, 16, 16, 8192, 128}, causal, 128, 128);
  EXPECT_LT(scheduleQueries({32, 64, multiprocessors, 8}, cycles, multiprocessors).efficiency(),
            0.8);
}
