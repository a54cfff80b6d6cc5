//===- Cluster.h - Machines and the links between them ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Estimates times on the clusters that common/include/fsdpcommon/ClusterFile.h describes.
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

/// Returns the cluster of CPU ranks: one machine, two threads per rank, vectors of 512 bits.
const Cluster &getCpuCluster();

/// Name of getGpuCluster() as a value of --cluster.
inline constexpr llvm::StringLiteral gpuClusterName = "8xH100";
/// Returns a cluster of eight H100 GPUs that NVLink connects. The file
/// examples/clusters/8xH100.json describes this cluster, too.
const Cluster &getGpuCluster();

/// Returns the seconds that a ring collective takes. The ring has n = `ranks` ranks, and the
/// numbers of two neighbouring ranks differ by `stride`. `rounds` is the number of passes around
/// the ring: 2 for an all-reduce. `bytes` is the size of the whole tensor. Returns zero for one
/// rank.
///
///   bytes * (n - 1) / n / bandwidth + latency of the n - 1 steps
///
/// The links of a level connect groups of ranks with each other. A group that contains m ranks of
/// the ring uses m links, so its bandwidth is m times the bandwidth of one link. NCCL estimates the
/// time in the same way (src/graph/tuning.cc).
double getRingSeconds(const Cluster &cluster, double bytes, int64_t ranks, int64_t stride,
                      unsigned rounds = 1);

/// Returns the seconds in which each rank of a ring sends `bytes` to the next rank, all at the same
/// time. Other parameters are as in getRingSeconds.
double getShiftSeconds(const Cluster &cluster, double bytes, int64_t ranks, int64_t stride);

/// Returns the seconds of an all-gather by copy engines, which `cluster` must have (canCopy).
/// Parameters are as in getRingSeconds.
double getCopySeconds(const Cluster &cluster, double bytes, int64_t ranks);

/// Returns how many multiprocessors of the device a ring occupies: those of the outermost level of
/// links that it crosses.
uint64_t getRingMultiprocessors(const Cluster &cluster, int64_t ranks, int64_t stride);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_CLUSTER_H
