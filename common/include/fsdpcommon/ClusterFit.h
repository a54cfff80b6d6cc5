//===- ClusterFit.h - Check cluster links against a mesh --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The time of a collective can be computed from the links of a cluster only if the links join all
// ranks of the mesh, and if the links divide all groups of the collective in the same way. In this
// example they do not: of the first group, 4 ranks share a link and then 2; of the second, 2 and
// then 4.
//
//   links of 4 ranks   | 0 1 2 3 | 4 5 6 7 | 8 9 10 11 |
//   groups of 6 ranks  | 0 1 2 3   4 5 | 6 7   8 9 10 11 |
//
// Each function returns the reason why the links do not fit, or nothing if they fit. The text of a
// reason follows the name of the cluster and ": ". `mesh` is the text of the mesh, such as
// "replicate=2,shard=6", and `meshRanks` is the number of its ranks.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPCOMMON_CLUSTERFIT_H
#define FSDPCOMMON_CLUSTERFIT_H

#include "fsdpcommon/ClusterFile.h"

namespace fsdpcommon {

/// The first group of a collective: `ranks` ranks, of which neighbours differ by at least `stride`.
/// `span` is the difference of the last and the first rank, plus `stride`.
struct RankSpan {
  uint64_t ranks = 1, stride = 1, span = 1;
};

/// Checks that the links join at least as many ranks as the mesh has.
std::optional<std::string> whyTooFewRanks(const Cluster &cluster, const std::string &mesh,
                                          uint64_t meshRanks);

/// Checks that all groups like `group` use the links alike. At each level, the links join n ranks.
/// Groups use them alike if n is a divisor or a multiple of the group's span, and also a divisor or
/// a multiple of the group's stride.
std::optional<std::string> whyNotAlike(const Cluster &cluster, const std::string &mesh,
                                       uint64_t meshRanks, const RankSpan &group);

} // namespace fsdpcommon

#endif // FSDPCOMMON_CLUSTERFIT_H
