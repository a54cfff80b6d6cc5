//===- PackingTest.cpp - Properties of interval packing ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Packing.h"
#include "gtest/gtest.h"
#include <random>
#include <vector>

using namespace mlir::fsdp;

static int64_t roundUp(int64_t bytes) {
  return (bytes + bufferAlignment - 1) / bufferAlignment * bufferAlignment;
}

/// Checks that offsets are aligned, live intervals do not overlap, and all are inside the arena.
static void expectValid(const std::vector<Interval> &intervals, const Packing &packing) {
  ASSERT_EQ(packing.offsets.size(), intervals.size());
  EXPECT_GE(packing.bytes, packing.lowerBound);
  for (size_t i = 0; i < intervals.size(); ++i) {
    EXPECT_EQ(packing.offsets[i] % getBufferAlignment(intervals[i].bytes), 0);
    EXPECT_GE(packing.offsets[i], 0);
    EXPECT_LE(packing.offsets[i] + intervals[i].bytes, packing.bytes);
    for (size_t j = 0; j < i; ++j) {
      bool apart = packing.offsets[i] + intervals[i].bytes <= packing.offsets[j] ||
                   packing.offsets[j] + intervals[j].bytes <= packing.offsets[i];
      EXPECT_TRUE(apart || !intervals[i].meets(intervals[j])) << "intervals " << i << " and " << j;
    }
  }
}

static std::vector<Interval> makeRandom(unsigned seed, unsigned count, int64_t maxBytes) {
  std::mt19937 random(seed);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  std::vector<Interval> intervals;
  for (unsigned i = 0; i < count; ++i) {
    int64_t first = below(count), length = below(4) ? below(6) : below(count);
    intervals.push_back({below(maxBytes) + 1, first, first + length});
  }
  return intervals;
}

TEST(Packing, RandomIntervalsDoNotOverlap) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::vector<Interval> intervals = makeRandom(seed, 1 + seed * 3, seed % 2 ? 4096 : 1 << 20);
    expectValid(intervals, packIntervals(intervals));
  }
}

TEST(Packing, StaysNearTheLowerBound) {
  double worst = 0, sum = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    Packing packing = packIntervals(makeRandom(1000 + seed, 200, 60000));
    double ratio = double(packing.bytes) / packing.lowerBound;
    worst = std::max(worst, ratio);
    sum += ratio;
  }
  EXPECT_LE(worst, 1.15);
  EXPECT_LE(sum / 40, 1.05);
}

/// Lifetimes of a training step: activations are freed in the reverse order of their creation.
TEST(Packing, NestedLifetimesNeedNoMoreThanTheirSum) {
  std::vector<Interval> intervals;
  int64_t sum = 0;
  for (int64_t i = 0; i < 100; ++i) {
    intervals.push_back({64 * (i % 7 + 1), i, 199 - i});
    sum += intervals.back().bytes;
  }
  Packing packing = packIntervals(intervals);
  expectValid(intervals, packing);
  EXPECT_EQ(packing.bytes, sum);
  EXPECT_EQ(packing.lowerBound, sum);
}

TEST(Packing, ApartInTimeSharesBytes) {
  std::vector<Interval> intervals = {{100, 0, 1}, {128, 2, 3}, {64, 4, 9}};
  Packing packing = packIntervals(intervals);
  EXPECT_EQ(packing.bytes, 128);
  for (int64_t offset : packing.offsets)
    EXPECT_EQ(offset, 0);
}

TEST(Packing, BordersAreIncluded) {
  Packing packing = packIntervals({Interval{64, 0, 5}, Interval{64, 5, 9}});
  EXPECT_EQ(packing.bytes, 128);
}

TEST(Packing, NothingAndEmptyBuffers) {
  EXPECT_EQ(packIntervals({}).bytes, 0);
  Packing packing = packIntervals({Interval{0, 0, 5}, Interval{10, 0, 5}});
  EXPECT_EQ(packing.bytes, 64);
  EXPECT_EQ(packing.offsets[0], 0);
}

TEST(Packing, LiveBytesNameTheirMoment) {
  int64_t moment = -1;
  EXPECT_EQ(getLiveBytes({Interval{64, 0, 3}, Interval{10, 2, 4}, Interval{64, 4, 9}}, &moment),
            128);
  EXPECT_EQ(moment, 2);
}

/// The second problem has more commands, at which no buffer becomes live.
TEST(Packing, MomentsAtWhichNothingBeginsDoNotCount) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    std::vector<Interval> intervals = makeRandom(2000 + seed, 120, 20000), spread = intervals;
    for (Interval &interval : spread) {
      interval.first = 3 * interval.first + 1;
      interval.last = 3 * interval.last + 1 + (interval.bytes % 3);
    }
    EXPECT_EQ(packIntervals(intervals).offsets, packIntervals(spread).offsets);
  }
}

TEST(Packing, AnswersWhetherItFits) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    std::vector<Interval> intervals = makeRandom(3000 + seed, 120, 20000);
    Packing best = packIntervals(intervals);
    for (int64_t room :
         {best.lowerBound - 1, best.bytes - 1, best.bytes, best.bytes + best.bytes / 8}) {
      Packing packing = packIntervals(intervals, room);
      expectValid(intervals, packing);
      EXPECT_EQ(packing.bytes <= room, best.bytes <= room) << room;
    }
  }
}

TEST(Packing, SameInputSameOffsets) {
  std::vector<Interval> intervals = makeRandom(7, 150, 10000);
  EXPECT_EQ(packIntervals(intervals).offsets, packIntervals(intervals).offsets);
  EXPECT_EQ(roundUp(1), bufferAlignment);
}
