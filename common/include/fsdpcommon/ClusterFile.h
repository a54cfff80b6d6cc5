//===- ClusterFile.h - Descriptions of clusters -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads a cluster from a file such as examples/clusters/8xH200.json, for the compiler's estimates
// and the runtime's simulation of a step. Links form levels, innermost first: a link of the first
// level joins `ranks` consecutive ranks, a link of the next level joins several such groups.
//
//   | 0 1 2 3 4 5 6 7 | 8 .. 15 | ...      NVLink: 8 ranks
//           InfiniBand between all         no number: all remaining ranks
//
//===----------------------------------------------------------------------===//

#ifndef FSDPCOMMON_CLUSTERFILE_H
#define FSDPCOMMON_CLUSTERFILE_H

#include "fsdpcommon/LocatedJson.h"
#include <cstdint>
#include <limits>
#include <map>

namespace fsdpcommon {

/// Cost of a ring on one level of links.
struct LinkRate {
  double stepSeconds = 0;    ///< latency of one step of the ring
  double bytesPerSecond = 0; ///< bandwidth of one rank in one direction
};

/// Round size of a switch: an all-reduce of `fromBytes` or more is sent in rounds of `bytes`.
struct RoundSize {
  double fromBytes = 0, bytes = 0;
};

/// A switch that sums what it receives and sends the sum to all ranks.
struct SwitchReduce {
  uint64_t leastRanks = 0; ///< Fewest ranks for which the switch is used; 0: no switch.
  /// Fixed seconds, bandwidth counted as for a ring, and seconds per round.
  double seconds = 0, bytesPerSecond = 0, roundSeconds = 0;
  std::vector<RoundSize> rounds; ///< in ascending order of fromBytes
};

/// One level of links.
struct ClusterLink {
  std::string name;
  /// Number of consecutive ranks that one link joins; fits int64_t.
  uint64_t ranks = std::numeric_limits<int64_t>::max();
  LinkRate plain; ///< rates of collectives without a protocol
  std::map<std::string, LinkRate> protocols;
  SwitchReduce switchReduce;
};

/// Measured rates of kernels of one kind; 0: use the rate of the device.
struct KindRate {
  double multiplyAdds = 0, bytesPerSecond = 0;
};

/// A cluster: the device of one rank, and the links between ranks. Rates are per second.
struct Cluster {
  std::string file, name; ///< `file` is empty if the cluster was not read from a file.
  /// Multiply-adds of f32, multiply-adds of bf16 and f16, and bytes of device memory.
  double wideMultiplyAdds = 0, narrowMultiplyAdds = 0, memoryBytesPerSecond = 0;
  /// The chip, such as "sm_90a", and its clocks per second while tensor cores are busy. Without a
  /// chip, times of kernels follow from the rates alone.
  std::string chip;
  double clocksPerSecond = 0;
  /// Launch latency of a kernel, and of a collective on an idle channel.
  double launchSeconds = 0, collectiveSeconds = 0;
  /// Bandwidth of copies to and from host memory; 0: they cost as much as device copies.
  double hostBytesPerSecond = 0;
  /// Bandwidth of a rank's offload file; the default is one NVMe drive.
  double fileBytesPerSecond = 2e9;
  std::map<std::string, KindRate> kinds;
  std::map<std::string, double> protocols; ///< seconds of a collective before its first step
  std::vector<ClusterLink> links;

  /// Returns the number of ranks that the links join.
  uint64_t ranks() const { return links.back().ranks; }
};

/// Reads a cluster file. Unknown members and values out of range are errors. Returns nothing and
/// sets `problem` on failure.
std::optional<Cluster> readCluster(const std::string &path, JsonProblem &problem);

} // namespace fsdpcommon

#endif // FSDPCOMMON_CLUSTERFILE_H
