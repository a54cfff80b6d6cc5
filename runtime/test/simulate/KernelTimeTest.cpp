//===- KernelTimeTest.cpp - Predicted times of kernels ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares the times of both models, and what bounds them, with closed forms.
//
//===----------------------------------------------------------------------===//

#include "fsdpcommon/KernelTime.h"
#include <gtest/gtest.h>

using fsdpcommon::Bound;
using fsdpcommon::Cluster;

static Cluster plainCluster() {
  Cluster cluster;
  cluster.wideMultiplyAdds = cluster.narrowMultiplyAdds = cluster.memoryBytesPerSecond = 1e9;
  return cluster;
}

TEST(KernelTime, FollowsFromRates) {
  Cluster cluster = plainCluster();
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

TEST(KernelTime, IsBoundByTheLargestPartOfItsClocks) {
  Cluster cluster = plainCluster();
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
