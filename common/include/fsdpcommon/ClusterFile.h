//===- ClusterFile.h - Machines and what connects them ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What estimates (compiler) and simulations (runtime) of a step are made of, from a file such as
// examples/clusters/8xH200.json. Links are levels, innermost first: ranks 0 .. ranks-1 are joined
// by the first, that many groups of them by the next.
//
//   | 0 1 2 3 4 5 6 7 | 8 .. 15 | ...      NVLink: 8 ranks
//           InfiniBand between all         no number: all others
//
//===----------------------------------------------------------------------===//

#ifndef FSDPCOMMON_CLUSTERFILE_H
#define FSDPCOMMON_CLUSTERFILE_H

#include "fsdpcommon/LocatedJson.h"
#include <cstdint>
#include <limits>
#include <map>

namespace fsdpcommon {

/// How a ring sends on one level of links: seconds of a step, and bytes of a rank in one direction
/// in a second.
struct LinkRate {
  double stepSeconds = 0, bytesPerSecond = 0;
};

/// All-reduce of `fromBytes` or more goes round by round, each with so many bytes.
struct RoundSize {
  double fromBytes = 0, bytes = 0;
};

/// A switch that adds up what it receives and sends the sum to all. Its bandwidth is counted as a
/// ring's would be.
struct SwitchReduce {
  uint64_t leastRanks = 0; ///< 0: there is none
  double seconds = 0, bytesPerSecond = 0, roundSeconds = 0;
  std::vector<RoundSize> rounds; ///< ascending
};

/// One level of links.
struct ClusterLink {
  std::string name;
  /// Consecutive ones that it joins; a number that int64_t holds.
  uint64_t ranks = std::numeric_limits<int64_t>::max();
  LinkRate plain; ///< where no protocol is named
  std::map<std::string, LinkRate> protocols;
  SwitchReduce switchReduce;
};

/// What kernels of one kind reach; 0: what the device does.
struct KindRate {
  double multiplyAdds = 0, bytesPerSecond = 0;
};

struct Cluster {
  std::string file, name; ///< file: empty where it was not read from one
  /// Of one rank: multiply-adds of f32, of bf16 and f16, bytes of memory, in a second.
  double wideMultiplyAdds = 0, narrowMultiplyAdds = 0, memoryBytesPerSecond = 0;
  /// The beginning of a kernel, and of a collective whose channel is idle.
  double launchSeconds = 0, collectiveSeconds = 0;
  /// What a copy to the host's memory or from it moves in a second; 0: it reads and writes memory
  /// as any copy does.
  double hostBytesPerSecond = 0;
  /// What a rank reads from its file or writes to it in a second: of one NVMe drive, unless it is
  /// said.
  double fileBytesPerSecond = 2e9;
  std::map<std::string, KindRate> kinds;
  std::map<std::string, double> protocols; ///< seconds of a collective before its first step
  std::vector<ClusterLink> links;

  /// Returns how many ranks the links join.
  uint64_t ranks() const { return links.back().ranks; }
  /// Returns the seconds of a kernel of `kind`: the longer one of its multiply-adds and its bytes,
  /// and its launch.
  double kernelSeconds(const std::string &kind, uint64_t multiplyAdds, uint64_t bf16MultiplyAdds,
                       uint64_t bytes) const;
};

/// Reads a file. Every member is known by name and has its range. Returns nothing when `problem`
/// says why.
std::optional<Cluster> readCluster(const std::string &path, JsonProblem &problem);

} // namespace fsdpcommon

#endif // FSDPCOMMON_CLUSTERFILE_H
