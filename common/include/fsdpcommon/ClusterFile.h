//===- ClusterFile.h - Descriptions of clusters -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads a cluster from a file such as examples/clusters/8xH200.json, for the compiler's estimates
// and the runtime's simulation of a step. Links form levels: a link of the first level joins
// `ranks` consecutive ranks, and a link of the next level joins several of these groups.
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

/// Cost of a ring collective on one level of links.
struct LinkRate {
  double stepSeconds = 0;    ///< latency of one step of the ring
  double bytesPerSecond = 0; ///< bandwidth of one rank in one direction
};

/// A round size of a switch: it sends all-reduces of at least `fromBytes` in rounds of `bytes`.
struct RoundSize {
  double fromBytes = 0, bytes = 0;
};

/// Cost of an all-reduce by a switch that sums the ranks' values and sends the sum to all ranks.
struct SwitchReduce {
  uint64_t leastRanks = 0; ///< Smallest number of ranks that use it; 0 without a switch.
  /// Fixed seconds of an all-reduce, bandwidth counted as for a ring, and seconds per round.
  double seconds = 0, bytesPerSecond = 0, roundSeconds = 0;
  std::vector<RoundSize> rounds; ///< in ascending order of fromBytes
};

/// A level of links, which all have the same rates.
struct ClusterLink {
  std::string name;
  /// Number of consecutive ranks that one link joins. The number fits int64_t.
  uint64_t ranks = std::numeric_limits<int64_t>::max();
  LinkRate plain; ///< rates of collectives without a protocol
  std::map<std::string, LinkRate> protocols;
  SwitchReduce switchReduce;
};

/// Measured rates of one kind of kernel, per second. A rate of 0 means the rate of the device.
struct KindRate {
  double multiplyAdds = 0, bytesPerSecond = 0;
};

/// A cluster: the device of one rank, and the links between ranks. Rates are per second.
struct Cluster {
  std::string file, name; ///< `file` is empty if the cluster was not read from a file.
  /// Multiply-adds in f32, multiply-adds in bf16 or f16, and bytes moved in device memory.
  double wideMultiplyAdds = 0, narrowMultiplyAdds = 0, memoryBytesPerSecond = 0;
  /// The chip, such as "sm_90a", and its clocks per second while tensor cores are busy. Without a
  /// chip, times of kernels follow from the rates alone.
  std::string chip;
  double clocksPerSecond = 0;
  /// Launch latency of a kernel, and launch latency of a collective on an idle channel.
  double launchSeconds = 0, collectiveSeconds = 0;
  /// Bandwidth of copies to and from host memory; 0 means the bandwidth of device copies.
  double hostBytesPerSecond = 0;
  /// Bandwidth of a rank's offload file. The default is that of one NVMe drive.
  double fileBytesPerSecond = 2e9;
  std::map<std::string, KindRate> kinds;
  std::map<std::string, double> protocols; ///< seconds of a collective before its first step
  std::vector<ClusterLink> links;

  /// Returns the number of ranks that the links join.
  uint64_t ranks() const { return links.back().ranks; }
};

/// Reads a cluster file. An unknown member is an error, and so is a value out of range. On an
/// error, returns nothing and sets `problem`.
std::optional<Cluster> readCluster(const std::string &path, JsonProblem &problem);

} // namespace fsdpcommon

#endif // FSDPCOMMON_CLUSTERFILE_H
