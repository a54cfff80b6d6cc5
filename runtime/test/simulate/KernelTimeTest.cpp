//===- KernelTimeTest.cpp - Predicted times of kernels ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares times that follow from rates and from clocks with formulas, and checks that a simulated
// step takes the times of the model that its artifact and its cluster have.
//
//===----------------------------------------------------------------------===//

#include "fsdpcommon/KernelTime.h"
#include "PlainCluster.h"
#include "simulate/Simulation.h"
#include "testing/toy/ToyModel.h"
#include <gtest/gtest.h>

using namespace fsdprt;
using namespace fsdprt::test;
using fsdpcommon::Bound;

TEST(KernelTime, FollowsFromRates) {
  Cluster cluster = plainCluster({link("a", 2, 0, 1e9)});
  cluster.launchSeconds = 1;
  cluster.narrowMultiplyAdds = 4e9;
  cluster.kinds["row"] = {0, 2e9};
  auto time = [&](const char *kind, double wide, double narrow, double bytes) {
    return fsdpcommon::timeByRates(cluster, kind, static_cast<uint64_t>(wide),
                                   static_cast<uint64_t>(narrow), static_cast<uint64_t>(bytes));
  };
  EXPECT_DOUBLE_EQ(time("map", 1e9, 8e9, 2e9).seconds, 1 + 1 + 2);
  EXPECT_EQ(time("map", 1e9, 8e9, 2e9).bound, Bound::tensor);
  EXPECT_DOUBLE_EQ(time("row", 0, 0, 6e9).seconds, 1 + 3);
  EXPECT_EQ(time("row", 0, 0, 6e9).bound, Bound::memory);
  EXPECT_EQ(time("row", 0, 0, 1e9).bound, Bound::launch);
}

TEST(KernelTime, GrowsIfCollectivesOccupyMultiprocessors) {
  Cluster cluster = plainCluster({link("a", 2, 0, 1e9)});
  cluster.launchSeconds = 1;
  fsdpcommon::KernelTime time = fsdpcommon::timeByRates(cluster, "map", 3000000000, 0, 2000000000);
  EXPECT_DOUBLE_EQ(time.secondsOn(1), 1 + 3);
  EXPECT_DOUBLE_EQ(time.secondsOn(0.5), 1 + 6);
  time = fsdpcommon::timeByRates(cluster, "map", 1000000000, 0, 3000000000);
  EXPECT_DOUBLE_EQ(time.secondsOn(0.5), 1 + 3);
  EXPECT_DOUBLE_EQ(time.secondsOn(0.25), 1 + 4);
}

TEST(KernelTime, IsBoundByTheLargestPartOfItsClocks) {
  Cluster cluster = plainCluster({link("a", 2, 0, 1e9)});
  cluster.clocksPerSecond = 10;
  cluster.launchSeconds = 0.5;
  fsdpcommon::LaunchClocks launch;
  launch.clocks = 100;
  launch.tensor = 60;
  launch.issue = 50;
  auto bound = [&] { return fsdpcommon::timeByClocks(cluster, launch).bound; };
  EXPECT_DOUBLE_EQ(fsdpcommon::timeByClocks(cluster, launch).seconds, 10.5);
  EXPECT_DOUBLE_EQ(fsdpcommon::timeByClocks(cluster, launch).tensorSeconds, 6);
  EXPECT_EQ(bound(), Bound::tensor);
  for (auto [unit, expected] : {std::pair(&fsdpcommon::LaunchClocks::issue, Bound::issue),
                                std::pair(&fsdpcommon::LaunchClocks::special, Bound::special),
                                std::pair(&fsdpcommon::LaunchClocks::shared, Bound::shared),
                                std::pair(&fsdpcommon::LaunchClocks::cache, Bound::cache)}) {
    launch.*unit = 70;
    EXPECT_EQ(bound(), expected);
    launch.*unit = 0;
  }
  launch.tensor = 30;
  launch.balance = 0.6; // idle for 40 clocks, busy for 30, and 30 clocks of latency
  EXPECT_EQ(bound(), Bound::idle);
  launch.balance = 0.8;
  EXPECT_EQ(bound(), Bound::latency);
  launch.bytes = 11e9;
  EXPECT_EQ(bound(), Bound::memory);
  EXPECT_DOUBLE_EQ(fsdpcommon::timeByClocks(cluster, launch).seconds, 11.5);
  launch = {};
  EXPECT_EQ(bound(), Bound::launch);
  EXPECT_DOUBLE_EQ(fsdpcommon::timeByClocks(cluster, launch).seconds, 0.5);
}

// The clocks of an artifact count only on its chip, and only if every launch has them.
TEST(Simulation, TakesTheClocksOfItsChip) {
  auto simulated = [](const char *chip, bool all) {
    Cluster cluster = plainCluster({link("a", 2, 1e-5, 1e9)});
    cluster.chip = chip;
    cluster.clocksPerSecond = *chip ? 1e3 : 0;
    auto manifest = toyManifest({});
    makeGpu(manifest);
    for (auto &kernel : manifest.kernels)
      for (auto &phase : kernel->phases) {
        phase->cost = std::make_unique<fb::CostT>();
        phase->cost->clocks = 2e3;
        phase->cost->tensor = 1.5e3;
      }
    if (!all)
      manifest.kernels.back()->phases.back()->cost.reset();
    auto file = pack(manifest, {});
    return simulate(*Artifact::fromMemory(file.data(), file.size(), "toy.fsdp"), cluster);
  };
  Simulation step = simulated("sm_80", true);
  EXPECT_EQ(step.model, KernelModel::clocks);
  ASSERT_FALSE(step.kernels.empty());
  double sum = 0;
  for (const SimulatedKernel &kernel : step.kernels) {
    EXPECT_DOUBLE_EQ(kernel.seconds, 2.0 * static_cast<double>(kernel.launches));
    EXPECT_DOUBLE_EQ(kernel.tensor, 1.5 * static_cast<double>(kernel.launches));
    EXPECT_EQ(kernel.bound, Bound::tensor);
    EXPECT_GE(kernel.launches, kernel.runs);
    sum += kernel.seconds;
  }
  EXPECT_NEAR(step.bounds[static_cast<size_t>(Bound::tensor)], sum, 1e-9 * sum);
  EXPECT_GE(step.compute, sum);
  EXPECT_EQ(simulated("sm_90a", true).model, KernelModel::rates);
  EXPECT_EQ(simulated("sm_80", false).model, KernelModel::rates);
  EXPECT_EQ(simulated("", true).model, KernelModel::rates);
}
