//===- ClusterFile.h - Descriptions of clusters -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads the description of a cluster from a file such as examples/clusters/8xH200.json. With this
// description, the compiler estimates times, and the runtime simulates a step. Links form levels: a
// link of the first level joins `ranks` consecutive ranks, and a link of each further level joins
// several groups that links of the previous level join.
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
  double stepSeconds = 0;    ///< latency in seconds of one step of the ring
  double bytesPerSecond = 0; ///< bandwidth of one rank in one direction
};

/// An all-reduce of at least `fromBytes` bytes is sent through the switch in rounds of `bytes`
/// bytes each.
struct RoundSize {
  double fromBytes = 0, bytes = 0;
};

/// Cost of an all-reduce by a switch that sums the ranks' values and sends the sum to all ranks.
struct SwitchReduce {
  /// Smallest number of ranks with which an all-reduce uses the switch, or 0 without a switch.
  uint64_t leastRanks = 0;
  /// `seconds` is the fixed time of an all-reduce, and `roundSeconds` is the time of each round.
  /// `bytesPerSecond` counts the bytes that each rank would send over a ring.
  double seconds = 0, bytesPerSecond = 0, roundSeconds = 0;
  std::vector<RoundSize> rounds; ///< in ascending order of `fromBytes`
  uint64_t multiprocessors = 0;  ///< of the device, which the all-reduce occupies
};

/// Cost of an all-gather by copy engines, which occupies no multiprocessors. There are none if
/// `bytesPerSecond` is 0.
struct CopyEngines {
  double seconds = 0; ///< of all copies of a rank and the waits for other ranks, without data
  double bytesPerSecond = 0; ///< bandwidth of one rank in one direction
};

/// A level of links. All links of a level have equal rates.
struct ClusterLink {
  std::string name;
  /// Number of consecutive ranks that one link joins, at most INT64_MAX.
  uint64_t ranks = std::numeric_limits<int64_t>::max();
  LinkRate plain; ///< rates of collectives without a protocol
  /// Multiprocessors of the device that a ring occupies of which this is the outermost level.
  uint64_t multiprocessors = 0;
  std::map<std::string, LinkRate> protocols;
  SwitchReduce switchReduce;
  CopyEngines copyEngines; ///< of the first level only
};

/// Measured rates, per second, of one kind of kernel. Where a rate is 0, the rate of the device is
/// used.
struct KindRate {
  double multiplyAdds = 0, bytesPerSecond = 0;
};

/// A cluster: the device of one rank, and the links between ranks. Rates are per second.
struct Cluster {
  std::string file, name; ///< `file` is empty if the cluster was not read from a file.
  /// Rates of the device: multiply-adds in f32, multiply-adds in bf16 or f16, and bytes that are
  /// read or written in device memory.
  double wideMultiplyAdds = 0, narrowMultiplyAdds = 0, memoryBytesPerSecond = 0;
  /// The chip, such as "sm_90a", and its clocks per second while tensor cores are busy. Without a
  /// chip, times of kernels follow from the rates alone.
  std::string chip;
  double clocksPerSecond = 0;
  /// Multiprocessors of the device. If it is 0, collectives occupy none.
  uint64_t multiprocessors = 0;
  /// Launch latencies in seconds: of a kernel, and of a collective on an idle channel.
  double launchSeconds = 0, collectiveSeconds = 0;
  /// Bandwidth of copies between device and host memory. If it is 0, these copies have the same
  /// bandwidth as copies within device memory.
  double hostBytesPerSecond = 0;
  /// Bandwidth of a rank's offload file. The default is the bandwidth of one NVMe drive.
  double fileBytesPerSecond = 2e9;
  std::map<std::string, KindRate> kinds;
  /// Seconds that pass before the first step of a collective, for each protocol.
  std::map<std::string, double> protocols;
  std::vector<ClusterLink> links;

  uint64_t ranks() const { return links.back().ranks; }
  bool hasCopyEngines() const { return links.front().copyEngines.bytesPerSecond > 0; }
  /// Returns true if copy engines can do the all-gathers of a group, whose ranks have numbers that
  /// differ by `stride`: a link of the first level joins the group.
  bool canCopy(uint64_t ranks, uint64_t stride) const {
    return hasCopyEngines() && ranks > 1 && ranks * stride <= links.front().ranks;
  }
};

/// Reads a cluster file. An unknown member and a value out of range are errors. On an error,
/// returns nothing and sets `problem`.
std::optional<Cluster> readCluster(const std::string &path, JsonProblem &problem);

} // namespace fsdpcommon

#endif // FSDPCOMMON_CLUSTERFILE_H
