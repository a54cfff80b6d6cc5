//===- Cluster.cpp - Machines and the links between them --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Cluster.h"
#include <algorithm>

using namespace mlir::fsdp;

namespace {
/// Rates of a rank: multiply-adds per second in f32 (`wide`) and in bf16 (`narrow`), bytes of
/// memory traffic per second, and seconds per launch.
struct DeviceRates {
  double wide, narrow, memory, launch;
};
} // namespace

static Cluster makeCluster(std::string name, const DeviceRates &rates, ClusterLink link) {
  Cluster cluster;
  cluster.name = std::move(name);
  cluster.wideMultiplyAdds = rates.wide;
  cluster.narrowMultiplyAdds = rates.narrow;
  cluster.memoryBytesPerSecond = rates.memory;
  cluster.launchSeconds = rates.launch;
  cluster.links.push_back(std::move(link));
  return cluster;
}

const Cluster &mlir::fsdp::getCpuCluster() {
  static const Cluster cluster = makeCluster("cpu", {110e9, 220e9, 15e9, 1e-6},
                                             {"memory", ClusterLink().ranks, {10e-6, 8e9}, {}});
  return cluster;
}

const Cluster &mlir::fsdp::getGpuCluster() {
  static const Cluster cluster = [] {
    Cluster made = makeCluster(gpuClusterName.str(), {30e12, 397e12, 3e12, 4e-6},
                               {"NVLink", 8, {3.4e-6, 370.8e9}, {}});
    made.chip = "sm_90a";
    made.clocksPerSecond = 1.469e9;
    return made;
  }();
  return cluster;
}

/// Returns how many ranks of a ring a link joins. The last link joins all ranks, also those that it
/// does not have. This matters for the default cluster of a target only (fsdpcommon/ClusterFit.h).
static int64_t getJoined(const Cluster &cluster, const ClusterLink &link, int64_t ranks,
                         int64_t stride) {
  return &link == &cluster.links.back()
             ? ranks
             : std::clamp<int64_t>(static_cast<int64_t>(link.ranks) / stride, 1, ranks);
}

double mlir::fsdp::getRingSeconds(const Cluster &cluster, double bytes, int64_t ranks,
                                  int64_t stride, unsigned rounds) {
  if (ranks < 2)
    return 0;
  double bandwidth = std::numeric_limits<double>::infinity(), latency = 0;
  int64_t below = 1;         // number of ranks of the ring in one group of the previous level
  int64_t steps = ranks - 1; // number of steps of the ring that are not yet assigned to a level
  for (const ClusterLink &link : cluster.links) {
    int64_t here = getJoined(cluster, link, ranks, stride);
    if (here > below) {
      bandwidth = std::min(bandwidth, link.plain.bytesPerSecond * static_cast<double>(below));
      // Count the steps of the ring that connect different groups of the previous level and stay
      // within one group of this level.
      int64_t crossings = std::min(steps, (ranks + below - 1) / below - (ranks + here - 1) / here);
      latency += static_cast<double>(crossings) * link.plain.stepSeconds;
      steps -= crossings;
    }
    below = here;
  }
  double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return rounds * (bytes * share / bandwidth + latency);
}

double mlir::fsdp::getShiftSeconds(const Cluster &cluster, double bytes, int64_t ranks,
                                   int64_t stride) {
  double seconds = 0;
  int64_t below = 1; // number of ranks of the ring in one group of the previous level
  for (const ClusterLink &link : cluster.links) {
    int64_t here = getJoined(cluster, link, ranks, stride);
    // The last rank of a group sends over a link of a higher level.
    if (here > below)
      seconds = std::max(seconds, bytes / link.plain.bytesPerSecond + link.plain.stepSeconds);
    below = here;
  }
  return seconds;
}

double mlir::fsdp::getCopySeconds(const Cluster &cluster, double bytes, int64_t ranks) {
  const fsdpcommon::CopyEngines &engines = cluster.links.front().copyEngines;
  double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return engines.seconds + bytes * share / engines.bytesPerSecond;
}

uint64_t mlir::fsdp::getRingMultiprocessors(const Cluster &cluster, int64_t ranks, int64_t stride) {
  uint64_t multiprocessors = 0;
  int64_t below = 1; // number of ranks of the ring in one group of the previous level
  for (const ClusterLink &link : cluster.links) {
    int64_t here = getJoined(cluster, link, ranks, stride);
    if (here > below)
      multiprocessors = link.multiprocessors;
    below = here;
  }
  return multiprocessors;
}
