//===- Cluster.h - Machines and what connects them --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Times of the clusters that common/include/fsdpcommon/ClusterFile.h describes.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_CLUSTER_H
#define FSDP_ANALYSIS_CLUSTER_H

#include "fsdp/Analysis/LocatedJson.h"
#include "fsdpcommon/ClusterFile.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::fsdp {
using fsdpcommon::Cluster;
using fsdpcommon::ClusterLink;
using fsdpcommon::readCluster;

/// Ranks of a processor with vectors of 512 bits, two threads of one machine.
const Cluster &getCpuCluster();

/// What --cluster calls the machines of getGpuCluster().
inline constexpr llvm::StringLiteral gpuClusterName = "8xH100";
/// Eight H100 that NVLink joins: examples/clusters/8xH100.json.
const Cluster &getGpuCluster();

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
