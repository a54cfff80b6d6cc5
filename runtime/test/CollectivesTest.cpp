//===- CollectivesTest.cpp - Local collectives ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Against sums written out by hand, on 1 to 5 ranks and on two axes; bits, not
// tolerances. And what happens when a rank does not come.
//
//===----------------------------------------------------------------------===//

#include "collectives/Local.h"
#include "collectives/Reduce.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <thread>

using namespace fsdprt;
using fb::CollectiveKind;
using fb::Reduction;

namespace {
using Bytes = std::vector<std::byte>;

struct Case {
  CollectiveKind kind;
  DType type = DType::f32;
  uint64_t count = 1;
  Reduction reduction = Reduction::sum;
  std::vector<uint32_t> axes = {0};
  uint32_t root = 0;
  bool inPlace = false;
  uint32_t workers = 1;
};

CollectiveKey keyOf(const Case &c) { return {c.kind, c.reduction, c.type, c.count, c.root, c.axes, 7, "test"}; }

Mesh meshOf(std::vector<uint64_t> sizes) {
  std::vector<Mesh::Axis> axes;
  for (size_t i = 0; i < sizes.size(); ++i)
    axes.push_back({i == 0 ? "a" : "b", sizes[i]});
  return Mesh(axes);
}

/// Random values of the type, some of them -0.
Bytes randomValues(DType type, uint64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Bytes result(count * sizeOf(type));
  for (uint64_t i = 0; i < count; ++i)
    storeElement(type, random() % 16 == 0 ? -0.0 : normal(random), result.data() + i * sizeOf(type));
  return result;
}

/// Runs it twice, so that a site is used again, and returns each rank's target.
std::vector<Bytes> runCase(const Mesh &mesh, const Case &c, const std::vector<Bytes> &sources, uint64_t targetBytes) {
  uint32_t ranks = static_cast<uint32_t>(mesh.ranks());
  Watch watch(ranks, 20);
  LocalCollectives collectives(watch, 0);
  LocalSite site(mesh, keyOf(c));
  std::vector<Bytes> targets(ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      WorkerPool pool(c.workers, 0);
      for (int round = 0; round < 2; ++round) {
        targets[rank] = c.inPlace ? sources[rank] : Bytes(targetBytes, std::byte{0xee});
        collectives.start(site, rank, c.inPlace ? targets[rank].data() : sources[rank].data(), targets[rank].data());
        collectives.complete(site, rank, pool);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return targets;
}

/// The sum as the contract has it, one element at a time.
void expectedSum(const Case &c, const std::vector<const std::byte *> &sources, std::byte *to) {
  if (c.type == DType::f64) {
    double sum = 0;
    for (const std::byte *source : sources)
      sum += loadElement(c.type, source);
    if (c.reduction == Reduction::avg)
      sum *= 1.0 / static_cast<double>(sources.size());
    storeElement(c.type, sum, to);
    return;
  }
  float sum = 0;
  for (const std::byte *source : sources)
    sum += static_cast<float>(loadElement(c.type, source));
  if (c.reduction == Reduction::avg)
    sum *= 1.0f / static_cast<float>(sources.size());
  storeElement(c.type, sum, to);
}

void checkCase(const Mesh &mesh, const Case &c) {
  uint32_t ranks = static_cast<uint32_t>(mesh.ranks());
  uint64_t group = mesh.groupSize(c.axes), size = sizeOf(c.type);
  uint64_t sent = c.kind == CollectiveKind::reduce_scatter ? c.count * group : c.count;
  uint64_t received = c.kind == CollectiveKind::all_gather ? c.count * group : c.count;
  std::vector<Bytes> sources;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    sources.push_back(randomValues(c.type, sent, rank + 1));
  std::vector<Bytes> targets = runCase(mesh, c, sources, received * size);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<uint32_t> members = mesh.group(rank, c.axes);
    uint64_t index = std::find(members.begin(), members.end(), rank) - members.begin();
    Bytes expected(received * size);
    for (uint64_t i = 0; i < received; ++i) {
      std::byte *to = expected.data() + i * size;
      if (c.kind == CollectiveKind::all_gather) {
        std::memcpy(to, sources[members[i / c.count]].data() + i % c.count * size, size);
      } else if (c.kind == CollectiveKind::broadcast) {
        std::memcpy(to, sources[members[c.root]].data() + i * size, size);
      } else {
        uint64_t from = c.kind == CollectiveKind::reduce_scatter ? index * c.count + i : i;
        std::vector<const std::byte *> parts;
        for (uint32_t member : members)
          parts.push_back(sources[member].data() + from * size);
        expectedSum(c, parts, to);
      }
    }
    ASSERT_EQ(targets[rank], expected) << "rank " << rank;
  }
}
} // namespace

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
  EXPECT_EQ(mesh.group(19, {3}), (std::vector<uint32_t>{19, 21, 23})); // (1, 3, 1)
  EXPECT_EQ(mesh.group(19, {4}), (std::vector<uint32_t>{17, 19}));
  EXPECT_EQ(mesh.groupSize({3}), 3u);
  EXPECT_EQ(mesh.pieces(4), 3u);
  EXPECT_EQ(mesh.pieceOf(4, 19), 0u);
  EXPECT_EQ(mesh.pieceOf(5, 19), 1u);
  EXPECT_EQ(mesh.solo().pieces(4), 1u);
}

class Collectives : public testing::TestWithParam<std::tuple<int, DType>> {};

TEST_P(Collectives, AllKindsAndSizes) {
  auto [ranks, type] = GetParam();
  Mesh mesh = meshOf({static_cast<uint64_t>(ranks)});
  for (uint64_t count : {0, 1, 15, 64, 2049})
    for (CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce,
                                CollectiveKind::broadcast})
      for (Reduction reduction : {Reduction::sum, Reduction::avg}) {
        Case c{kind, type, count, reduction};
        c.root = ranks - 1;
        checkCase(mesh, c);
        c.inPlace = true;
        if (kind == CollectiveKind::all_reduce)
          checkCase(mesh, c);
      }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives,
                         testing::Combine(testing::Range(1, 6),
                                          testing::Values(DType::f64, DType::f32, DType::f16, DType::bf16)),
                         [](const auto &info) {
                           return std::string(nameOf(std::get<1>(info.param))) + "On" +
                                  std::to_string(std::get<0>(info.param));
                         });

TEST(CollectivesMore, TwoAxesAndWorkers) {
  for (std::vector<uint32_t> axes : {std::vector<uint32_t>{0}, {1}, {0, 1}, {}})
    for (CollectiveKind kind :
         {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
      Case c{kind, DType::f32, 20011, Reduction::avg, axes};
      c.workers = 3; // large enough to be split
      checkCase(meshOf({2, 3}), c);
    }
}

TEST(CollectivesMore, Neighbours) {
  for (CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce})
    for (uint32_t group : {2, 3})
      checkCase(Mesh({{"a", 2}, {"b", 4}}, {{1, 1}, {1, 2}, {0, 2}}), Case{kind, DType::f32, 65, Reduction::sum, {group}});
}

TEST(CollectivesMore, IntegersAreGathered) {
  Case c{CollectiveKind::all_gather, DType::i64, 5};
  Mesh mesh = meshOf({2});
  auto targets = runCase(mesh, c, {Bytes(40, std::byte{1}), Bytes(40, std::byte{2})}, 80);
  EXPECT_EQ(targets[0][39], std::byte{1});
  EXPECT_EQ(targets[0][40], std::byte{2});
  EXPECT_EQ(targets[0], targets[1]);
}

TEST(CollectivesMore, NegativeZerosMakePlusZero) {
  float zero = -0.0f, sum = 1;
  const std::byte *sources[] = {reinterpret_cast<std::byte *>(&zero), reinterpret_cast<std::byte *>(&zero)};
  reduceInOrder(DType::f32, false, sources, 2, 0, 1, reinterpret_cast<std::byte *>(&sum));
  EXPECT_FALSE(std::signbit(sum));
}

TEST(CollectivesMore, ManyMeetings) { // a fast rank must not overtake a slow one
  Mesh mesh = meshOf({3});
  Watch watch(3, 20);
  LocalCollectives collectives(watch, 100);
  Case c{CollectiveKind::all_gather, DType::f32, 4};
  LocalSite site(mesh, keyOf(c));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint32_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      WorkerPool pool(1, 0);
      float source[4], target[12];
      for (int round = 0; round < 2000; ++round) {
        for (float &x : source)
          x = static_cast<float>(round * 10 + static_cast<int>(rank));
        collectives.start(site, rank, reinterpret_cast<std::byte *>(source), reinterpret_cast<std::byte *>(target));
        collectives.complete(site, rank, pool);
        for (int i = 0; i < 12; ++i)
          wrong += target[i] != static_cast<float>(round * 10 + i / 4);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CollectivesMore, NamesWhoIsMissing) {
  Mesh mesh = meshOf({3});
  Watch watch(3, 0.2);
  watch.beat(2, 12, "h.0 mlp");
  LocalCollectives collectives(watch, 0);
  LocalSite site(mesh, {CollectiveKind::all_reduce, Reduction::sum, DType::f32, 1, 0, {0}, 42, "loss"});
  std::vector<std::thread> threads;
  std::string messages[2];
  for (uint32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      WorkerPool pool(1, 0);
      float x = 1, y;
      collectives.start(site, rank, reinterpret_cast<std::byte *>(&x), reinterpret_cast<std::byte *>(&y));
      try {
        collectives.complete(site, rank, pool);
      } catch (const Error &error) {
        messages[rank] = error.message;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(messages[0],
            "rank 0 waited 0.2 s at collective 42 (all_reduce 'loss') for rank 2 (last seen at command 12, 'h.0 mlp'), "
            "which made no progress");
  EXPECT_NE(messages[1].find("rank 1 waited"), std::string::npos);
}

TEST(CollectivesMore, WaitsForASlowRankThatMakesProgress) {
  Mesh mesh = meshOf({2});
  Watch watch(2, 0.2);
  LocalCollectives collectives(watch, 0);
  LocalSite site(mesh, {CollectiveKind::all_reduce, Reduction::sum, DType::f32, 1, 0, {0}, 1, ""});
  float x[2] = {1, 2}, y[2];
  auto meet = [&](uint32_t rank) {
    WorkerPool pool(1, 0);
    collectives.start(site, rank, reinterpret_cast<std::byte *>(&x[rank]), reinterpret_cast<std::byte *>(&y[rank]));
    collectives.complete(site, rank, pool);
  };
  std::thread slow([&] {
    for (int i = 0; i < 12; ++i) { // longer than the limit in all, never in one go
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      watch.beat(1);
    }
    meet(1);
  });
  meet(0);
  slow.join();
  EXPECT_EQ(y[0], 3);
  EXPECT_EQ(y[1], 3);
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
