//===- CopyEnginesTest.cpp - All-gathers by copy engines --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "OverlappingToy.h"
#include "PlainCluster.h"
#include "simulate/Simulation.h"
#include "simulate/Transfer.h"
#include "testing/toy/ToyModel.h"
#include <gtest/gtest.h>

using namespace fsdprt;
using namespace fsdprt::test;
using Kind = fb::CollectiveKind;

TEST(CopyEngines, GatherWithinALink) {
  Cluster cluster = plainCluster({link("in", 8, 1e-6, 4e9), link("out", 64, 1e-4, 1e8)});
  cluster.multiprocessors = 100;
  cluster.links[0].multiprocessors = 30;
  auto plan = [&](Kind kind, CollectiveGroup group, bool copies) {
    return planTransfer(cluster, kind, 8e8, group, copies);
  };
  EXPECT_EQ(plan(Kind::all_gather, {8, 1}, true).multiprocessors, 30u); // there are no engines
  cluster.links[0].copyEngines = {5e-6, 3e9};
  Transfer copies = plan(Kind::all_gather, {8, 1}, true);
  EXPECT_EQ(copies.protocol, "copy engines");
  EXPECT_EQ(copies.multiprocessors, 0u);
  EXPECT_NEAR(copies.aloneSeconds(), 5e-6 + 7e8 / 3e9, 1e-12);
  EXPECT_NEAR(plan(Kind::all_gather, {4, 2}, true).aloneSeconds(), 5e-6 + 6e8 / 3e9, 1e-12);
  EXPECT_EQ(plan(Kind::all_gather, {8, 1}, false).multiprocessors, 30u);
  for (auto [kind, group] : {std::pair(Kind::all_gather, CollectiveGroup{16, 1}),
                             std::pair(Kind::all_gather, CollectiveGroup{4, 4}),
                             std::pair(Kind::reduce_scatter, CollectiveGroup{8, 1}),
                             std::pair(Kind::all_reduce, CollectiveGroup{8, 1})})
    EXPECT_NE(plan(kind, group, true).protocol, "copy engines");
}

// A simulation takes the faster way of all-gathers, and gives the time of the other one.
TEST(CopyEngines, TakesTheFasterWay) {
  auto file = pack(overlappingToy(), {});
  auto artifact = Artifact::fromMemory(file.data(), file.size(), "toy.fsdp");
  Cluster cluster = plainCluster({link("a", 8, 1e-5, 1e6)});
  cluster.memoryBytesPerSecond = 1e15;
  cluster.multiprocessors = 100;
  cluster.links[0].multiprocessors = 60;
  Simulation kernels = simulate(*artifact, cluster);
  EXPECT_FALSE(kernels.copies);
  EXPECT_EQ(kernels.otherSeconds, 0);
  EXPECT_GT(kernels.slowed, 0);
  cluster.links[0].copyEngines = {1e-5, 1e6}; // as fast as a ring, but without multiprocessors
  Simulation copies = simulate(*artifact, cluster);
  EXPECT_TRUE(copies.copies);
  EXPECT_EQ(copies.otherSeconds, kernels.seconds);
  EXPECT_LT(copies.seconds, kernels.seconds);
  EXPECT_LT(copies.slowed, kernels.slowed);
  cluster.links[0].copyEngines = {1, 1e3};
  Simulation slow = simulate(*artifact, cluster);
  EXPECT_FALSE(slow.copies);
  EXPECT_EQ(slow.seconds, kernels.seconds);
  EXPECT_GT(slow.otherSeconds, kernels.seconds);
}
