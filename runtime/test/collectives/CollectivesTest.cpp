//===- CollectivesTest.cpp - Parts of the collectives -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests meshes, sums, worker pools, time limits and the flight recorder. ConformanceTest.cpp tests
// collectives.
//
//===----------------------------------------------------------------------===//

#include "artifact/Mesh.h"
#include "collectives/Watchdog.h"
#include "collectives/local/Reduce.h"
#include "device/cpu/WorkerPool.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

using namespace fsdprt;

static Mesh meshOf(std::vector<uint64_t> sizes) {
  std::vector<Mesh::Axis> axes;
  for (size_t i = 0; i < sizes.size(); ++i)
    axes.push_back({i == 0 ? "a" : "b", sizes[i]});
  return Mesh(axes);
}

TEST(Mesh, Groups) {
  Mesh mesh = meshOf({2, 3});
  EXPECT_EQ(mesh.group(4, {1}), (std::vector<uint32_t>{3, 4, 5}));
  EXPECT_EQ(mesh.group(4, {0}), (std::vector<uint32_t>{1, 4}));
  EXPECT_EQ(mesh.group(4, {0, 1}), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(mesh.group(4, {}), (std::vector<uint32_t>{4}));
  EXPECT_EQ(mesh.indexOn("b", 4), 1u);
  EXPECT_EQ(mesh.text(), "a=2,b=3");
}

TEST(Mesh, NeighboursOnAnAxis) {
  Mesh mesh({{"replicate", 2}, {"shard", 6}, {"other", 2}}, {{1, 3}, {1, 2}});
  EXPECT_EQ(mesh.ranks(), 24u);
  EXPECT_EQ(mesh.group(19, {3}), (std::vector<uint32_t>{19, 21, 23})); // rank 19 is at (1, 3, 1)
  EXPECT_EQ(mesh.group(19, {4}), (std::vector<uint32_t>{17, 19}));
  EXPECT_EQ(mesh.groupSize({3}), 3u);
  EXPECT_EQ(mesh.pieces(4), 3u);
  EXPECT_EQ(mesh.pieceOf(4, 19), 0u);
  EXPECT_EQ(mesh.pieceOf(5, 19), 1u);
  EXPECT_EQ(mesh.solo().pieces(4), 1u);
}

TEST(Watchdog, EndsTheLatestCollectiveOfANumber) {
  Watchdog watchdog(1, 1);
  const CollectiveRecord *numRecords = watchdog.progressOf(0).recorder;
  for (uint32_t collective : {5u, 6u, 5u})
    watchdog.beginCollective(0, collective);
  // There are two records of collective 5. This call ends the second of these records.
  watchdog.endCollective(0, 5);
  EXPECT_EQ(numRecords[0].end, 0u);
  EXPECT_EQ(numRecords[1].end, 0u);
  EXPECT_NE(numRecords[2].end, 0u);
  uint64_t end = numRecords[2].end;
  watchdog.beginCollective(0, 5);
  watchdog.endCollective(0, 5);
  watchdog.endCollective(0, 6);
  EXPECT_EQ(numRecords[2].end, end);
  EXPECT_NE(numRecords[3].end, 0u);
  EXPECT_NE(numRecords[1].end, 0u);
}

TEST(Watchdog, RecordsTheLastCollectivesInOrder) {
  Watchdog watchdog(1, 1);
  watchdog.beginRun(0, "step", 3);
  for (uint32_t i = 0; i < RankProgress::recorded + 6; ++i) {
    watchdog.beginCollective(0, i);
    watchdog.endCollective(0, i);
  }
  std::vector<uint32_t> described;
  std::string text = watchdog.record("why", [&](uint32_t collective) {
    described.push_back(collective);
    return "c" + std::to_string(collective);
  });
  ASSERT_EQ(described.size(), RankProgress::recorded);
  for (uint32_t i = 0; i < described.size(); ++i)
    EXPECT_EQ(described[i], i + 6);
  EXPECT_EQ(text.find("\"c5\""), std::string::npos);
  EXPECT_NE(text.find("\"run\": \"step 3\""), std::string::npos);
}

// A process that is stopped does not poll. This time does not count, but the time of polls does.
TEST(ProgressTimeout, DoesNotExpireBecauseTheProcessWasStopped) {
  Watchdog watchdog(1, 0.45);
  ProgressTimeout timeout(watchdog);
  for (int stop = 0; stop < 4; ++stop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_FALSE(timeout.hasExpired(0)) << stop;
  }
  EXPECT_FALSE(timeout.hasExpired(1)) << "progress begins the limit again";
  int polls = 0;
  for (; polls < 10000 && !timeout.hasExpired(1); ++polls)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE(polls, 4);
  EXPECT_LT(polls, 10000);
}

TEST(Reduce, NegativeZerosMakePlusZero) {
  float zero = -0.0f, sum = 1;
  const std::byte *sources[] = {reinterpret_cast<std::byte *>(&zero),
                                reinterpret_cast<std::byte *>(&zero)};
  reduceInOrder(DType::f32, false, sources, 2, 0, 1, reinterpret_cast<std::byte *>(&sum));
  EXPECT_FALSE(std::signbit(sum));
}

// Large results that begin at a cache line are written with streaming stores. This test compares
// them with small results, with a result that begins elsewhere, and with one in place of a source.
TEST(Reduce, LargeSumsEqualThoseOfParts) {
  for (DType type : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    uint64_t size = sizeOf(type), count = (2 << 20) / size + 5;
    std::vector<std::byte> first(count * size), second(count * size);
    for (uint64_t i = 0; i < count * size; ++i) {
      // Bytes below 64 make no NaN.
      first[i] = std::byte(i * 7 % 61);
      second[i] = std::byte(i * 11 % 59);
    }
    const std::byte *sources[] = {first.data(), second.data()};
    std::vector<std::byte> parts(count * size);
    for (uint64_t i = 0; i < count; i += 1000)
      reduceInOrder(type, true, sources, 2, i * size, std::min<uint64_t>(1000, count - i),
                    parts.data() + i * size);
    std::vector<std::byte> room(count * size + 128);
    std::byte *line = room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64;
    for (uint64_t shift : {uint64_t(0), size}) {
      reduceInOrder(type, true, sources, 2, 0, count, line + shift);
      EXPECT_EQ(std::memcmp(line + shift, parts.data(), parts.size()), 0)
          << "type " << static_cast<int>(type) << ", shift " << shift;
    }
    reduceInOrder(type, true, sources, 2, 0, count, first.data());
    EXPECT_EQ(first, parts) << "in place, type " << static_cast<int>(type);
  }
}

TEST(WorkerPool, SplitsAtTiles) {
  for (uint64_t extent : {1, 7, 64, 1000})
    for (uint64_t tile : {1, 3, 64})
      for (uint32_t workers : {1u, 2u, 5u}) {
        uint64_t next = 0;
        for (uint32_t w = 0; w < workers; ++w) {
          uint64_t begin, end;
          WorkerPool::split(extent, tile, workers, w, begin, end);
          if (begin >= end)
            continue;
          EXPECT_EQ(begin, next);
          EXPECT_EQ(begin % tile, 0u);
          next = end;
        }
        EXPECT_EQ(next, extent);
      }
}
