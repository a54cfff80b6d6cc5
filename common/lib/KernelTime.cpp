//===- KernelTime.cpp - Predicted times of kernels --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdpcommon/KernelTime.h"
#include <algorithm>

using namespace fsdpcommon;

const char *fsdpcommon::nameOf(Bound bound) {
  static const char *const names[numBounds] = {"launch", "memory", "tensor", "issue",  "special",
                                               "shared", "cache",  "idle",   "latency"};
  return names[static_cast<unsigned>(bound)];
}

double KernelTime::secondsOn(double free) const {
  double work = std::max(busySeconds, memorySeconds);
  return seconds - work + std::max(busySeconds / free, memorySeconds);
}

KernelTime fsdpcommon::timeByRates(const Cluster &cluster, const std::string &kind,
                                   uint64_t multiplyAdds, uint64_t bf16MultiplyAdds,
                                   uint64_t bytes) {
  double wide = cluster.wideMultiplyAdds, narrow = cluster.narrowMultiplyAdds,
         memory = cluster.memoryBytesPerSecond;
  auto known = cluster.kinds.find(kind);
  if (known != cluster.kinds.end() && known->second.multiplyAdds > 0)
    wide = narrow = known->second.multiplyAdds;
  if (known != cluster.kinds.end() && known->second.bytesPerSecond > 0)
    memory = known->second.bytesPerSecond;
  KernelTime time;
  time.tensorSeconds =
      static_cast<double>(multiplyAdds) / wide + static_cast<double>(bf16MultiplyAdds) / narrow;
  time.memorySeconds = static_cast<double>(bytes) / memory;
  time.busySeconds = time.tensorSeconds;
  double work = std::max(time.tensorSeconds, time.memorySeconds);
  time.seconds = cluster.launchSeconds + work;
  if (work > cluster.launchSeconds)
    time.bound = time.tensorSeconds > time.memorySeconds ? Bound::tensor : Bound::memory;
  return time;
}

/// Returns the largest part of the clocks of a launch.
static Bound boundOf(const LaunchClocks &launch) {
  std::pair<double, Bound> parts[] = {{launch.tensor, Bound::tensor},
                                      {launch.issue, Bound::issue},
                                      {launch.special, Bound::special},
                                      {launch.shared, Bound::shared},
                                      {launch.cache, Bound::cache},
                                      {0, Bound::idle},
                                      {0, Bound::latency}};
  double busy = 0;
  for (auto [clocks, bound] : parts)
    busy = std::max(busy, clocks);
  double idle = launch.clocks * (1 - launch.balance);
  parts[5].first = idle;
  parts[6].first = launch.clocks - idle - busy;
  return std::max_element(std::begin(parts), std::end(parts),
                          [](const auto &a, const auto &b) { return a.first < b.first; })
      ->second;
}

KernelTime fsdpcommon::timeByClocks(const Cluster &cluster, const LaunchClocks &launch) {
  KernelTime time;
  time.tensorSeconds = launch.tensor / cluster.clocksPerSecond;
  time.memorySeconds = launch.bytes / cluster.memoryBytesPerSecond;
  double busy = launch.clocks / cluster.clocksPerSecond, work = std::max(busy, time.memorySeconds);
  time.busySeconds = busy;
  time.seconds = cluster.launchSeconds + work;
  if (work > cluster.launchSeconds)
    time.bound = time.memorySeconds > busy ? Bound::memory : boundOf(launch);
  return time;
}
