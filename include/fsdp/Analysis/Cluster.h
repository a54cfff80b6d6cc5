//===- Cluster.h - Machines and what connects them --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What estimates of time are made of. Links are levels, innermost first: ranks
// 0 .. ranks-1 are joined by the first, that many groups of them by the next.
//
//   | 0 1 2 3 4 5 6 7 | 8 .. 15 | ...      NVLink: 8 ranks
//           InfiniBand between all         no number: all others
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_CLUSTER_H
#define FSDP_ANALYSIS_CLUSTER_H

#include "fsdp/Analysis/LocatedJson.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <limits>

namespace mlir::fsdp {

/// One level of links.
struct Link {
  std::string name;
  /// Consecutive ranks that it joins.
  int64_t ranks = std::numeric_limits<int64_t>::max();
  /// Of one rank in one direction; seconds of a message that has no bytes.
  double bytesPerSecond = 0, seconds = 0;
};

struct Cluster {
  std::string name;
  /// Of one rank: multiply-adds of f32, of bf16 and f16, bytes of memory, in a second; the
  /// beginning of a kernel.
  double wideMultiplyAdds = 0, narrowMultiplyAdds = 0, memoryBytesPerSecond = 0, launchSeconds = 0;
  std::vector<Link> links;
  /// What a copy to the host's memory or from it moves in a second; 0: it reads and writes memory
  /// as any copy does.
  double hostBytesPerSecond = 0;
  /// What a rank reads from its file or writes to it in a second: of one NVMe drive, unless it is
  /// said.
  double fileBytesPerSecond = 2e9;
};

/// Ranks of a processor with vectors of 512 bits, two threads of one machine.
const Cluster &getCpuCluster();

/// What --cluster calls the machines of getGpuCluster().
inline constexpr llvm::StringLiteral gpuClusterName = "8xH100";
/// Eight H100 that NVLink joins: examples/clusters/8xH100.json.
const Cluster &getGpuCluster();

/// Reads a file such as examples/clusters/8xH100.json. Members that are for fsdp-run --simulate
/// alone are passed over. Nothing is returned when `problem` says why.
std::optional<Cluster> readCluster(llvm::StringRef path, JsonProblem &problem);

/// Seconds of a ring that moves `bytes` to each of `ranks` ranks (what stays on a rank included)
/// that are `stride` apart, `rounds` times (an all-reduce: 2). Zero for one rank.
///
///   bytes * (n - 1) / n / bandwidth + latency of the n - 1 steps
///
/// Where the ring leaves a level, the m members within it share the way out of m ranks, as NCCL's
/// rings do (its src/graph/tuning.cc: time = latency + bytes / bandwidth).
double getRingSeconds(const Cluster &cluster, double bytes, int64_t ranks, int64_t stride,
                      unsigned rounds = 1);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_CLUSTER_H
