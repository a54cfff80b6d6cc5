//===- PlainCluster.h - Clusters of tests of the simulator ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Makes clusters with round rates, for which times can be computed by hand.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_SIMULATE_PLAINCLUSTER_H
#define FSDPRT_TEST_SIMULATE_PLAINCLUSTER_H

#include "fsdpcommon/ClusterFile.h"
#include <utility>

namespace fsdprt::test {

/// Returns a cluster whose devices have rates of 1e9 per second.
inline fsdpcommon::Cluster plainCluster(std::vector<fsdpcommon::ClusterLink> links) {
  fsdpcommon::Cluster cluster;
  cluster.file = "plain.json";
  cluster.wideMultiplyAdds = cluster.narrowMultiplyAdds = 1e9;
  cluster.memoryBytesPerSecond = 1e9;
  cluster.links = std::move(links);
  return cluster;
}

/// Returns a level of links with one protocol.
inline fsdpcommon::ClusterLink link(const char *name, uint64_t ranks, double seconds,
                                    double bytesPerSecond) {
  fsdpcommon::ClusterLink result;
  result.name = name;
  result.ranks = ranks;
  result.plain = {seconds, bytesPerSecond};
  return result;
}

} // namespace fsdprt::test

#endif // FSDPRT_TEST_SIMULATE_PLAINCLUSTER_H
