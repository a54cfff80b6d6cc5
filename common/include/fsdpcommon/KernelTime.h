//===- KernelTime.h - Predicted times of kernels ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Predicts the time of a kernel on the device of a cluster, and what bounds it. There are two
// models:
//
//   rates    launch + max(multiply-adds / rate, bytes / memory rate)
//   clocks   launch + max(clocks / clock rate, bytes / memory rate), for a launch on a GPU whose
//            clocks the compiler has computed (include/fsdp/Analysis/Gpu/GpuClocks.h)
//
// The clocks of a launch consist of those of its busiest unit, of the time in which multiprocessors
// without a block wait for others, and of latencies that no work overlaps:
//
//   | busiest unit, average of all multiprocessors | latency | idle at the end |
//
//===----------------------------------------------------------------------===//

#ifndef FSDPCOMMON_KERNELTIME_H
#define FSDPCOMMON_KERNELTIME_H

#include "fsdpcommon/ClusterFile.h"

namespace fsdpcommon {

/// Clocks of a launch, and bytes that it moves from and to memory.
struct LaunchClocks {
  double clocks = 0; ///< from begin to end, if memory is fast enough
  /// Clocks for which units of a multiprocessor are busy, on average: tensor cores, schedulers,
  /// units of special functions, shared memory, and transfers from and to the L2 cache.
  double tensor = 0, issue = 0, special = 0, shared = 0, cache = 0;
  double bytes = 0;
  double balance = 1; ///< part of the multiprocessors' time that the blocks fill, in (0, 1]
};

/// What bounds the time of a kernel: the largest part of it. Idle: multiprocessors that wait for
/// the last blocks.
enum class Bound { launch, memory, tensor, issue, special, shared, cache, idle, latency };
inline constexpr unsigned numBounds = 9;
const char *nameOf(Bound bound);

struct KernelTime {
  double seconds = 0;       ///< includes the launch
  double tensorSeconds = 0; ///< least time for the multiply-adds
  double memorySeconds = 0; ///< least time for the bytes
  double busySeconds = 0;   ///< time on the multiprocessors, if memory is fast enough
  Bound bound = Bound::launch;

  /// Returns the time in seconds if collectives leave the part `free` of the multiprocessors.
  double secondsOn(double free) const;
};

/// Predicts the time of a kernel of `kind` by the cluster's rates.
KernelTime timeByRates(const Cluster &cluster, const std::string &kind, uint64_t multiplyAdds,
                       uint64_t bf16MultiplyAdds, uint64_t bytes);

/// Predicts the time of a launch by its clocks. The cluster must have a clock rate.
KernelTime timeByClocks(const Cluster &cluster, const LaunchClocks &launch);

} // namespace fsdpcommon

#endif // FSDPCOMMON_KERNELTIME_H
