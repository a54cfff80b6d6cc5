//===- ClusterFit.cpp - Check cluster links against a mesh ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdpcommon/ClusterFit.h"

using namespace fsdpcommon;

std::optional<std::string> fsdpcommon::whyTooFewRanks(const Cluster &cluster,
                                                      const std::string &mesh, uint64_t meshRanks) {
  if (meshRanks <= cluster.ranks())
    return std::nullopt;
  return "expected links that join the " + std::to_string(meshRanks) + " ranks of the mesh " +
         mesh + ", found links of " + std::to_string(cluster.ranks()) +
         "; take a larger cluster, or remove \"ranks\" of the last link";
}

std::optional<std::string> fsdpcommon::whyNotAlike(const Cluster &cluster, const std::string &mesh,
                                                   uint64_t meshRanks, const RankSpan &group) {
  for (const ClusterLink &link : cluster.links)
    for (uint64_t size : {group.span, group.stride})
      if (group.ranks > 1 && link.ranks < meshRanks && link.ranks % size != 0 &&
          size % link.ranks != 0)
        return "link \"" + link.name + "\" joins " + std::to_string(link.ranks) +
               " ranks each, and groups of the mesh " + mesh + " span " + std::to_string(size) +
               ": expected one of the two numbers to divide the other, so that all ranks are "
               "alike; take another mesh or another cluster";
  return std::nullopt;
}
