//===- Cost.h - Estimated time of commands ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Estimates the times of commands. The time of a kernel is the time of its multiply-adds or the
// time of its memory traffic, whichever is longer (roofline model). The time of a collective is the
// time of a ring algorithm (Cluster.h). The compiler compares plans by these estimates. The
// estimates are not predictions of measured times.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_COST_H
#define FSDP_ANALYSIS_COST_H

#include "fsdp/Analysis/Cluster.h"
#include "fsdp/IR/FSDP.h"
#include "fsdpcommon/ClusterFit.h"
#include "fsdpcommon/KernelTime.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Returns the cluster that the file `path` describes. Returns getCpuCluster() if `path` is empty,
/// and getGpuCluster() if `path` is `gpuClusterName`. If the file is invalid, emits an error at the
/// position of the mistake in the file.
FailureOr<Cluster> loadCluster(MLIRContext *context, StringRef path);

/// Returns the value of --mesh for a mesh with these axes and sizes, such as "shard=4,tensor=2".
/// Leaves out axes of one rank. If all axes have one rank, returns "shard=1".
std::string formatMesh(ArrayRef<std::pair<StringRef, int64_t>> axes);

/// Returns the reason why the links of the cluster do not fit `mesh` or a collective of the
/// module's programs (fsdpcommon/ClusterFit.h). Returns nothing if they fit.
std::optional<std::string> whyUnfit(ModuleOp module, MeshOp mesh, const Cluster &cluster);

/// Estimates the seconds that one rank needs for a command of a program.
class CostModel {
public:
  /// If `copies` is true, copy engines do the all-gathers that they can do.
  explicit CostModel(const Cluster &cluster, bool copies = false)
      : cluster(cluster), copies(copies) {}

  /// Returns the seconds of one execution of a command.
  /// - Loop: the sum of the seconds of all commands in all iterations.
  /// - Collective: the time that the collective takes if no other transfer uses its links.
  /// - Wait: zero.
  double getSeconds(Operation *command);
  /// Returns the latency of the collective, that is, the seconds that it would take for zero bytes.
  /// A launch that starts several collectives takes this latency only once, not once per
  /// collective.
  double getLatency(CollectiveOp collective);
  /// Returns the seconds of one launch of a kernel.
  double getKernelSeconds(func::FuncOp kernel) { return getKernelTime(kernel).seconds; }
  /// Returns the parts of the time of a launch, from which its time beside collectives follows.
  const fsdpcommon::KernelTime &getKernelTime(LaunchOp launch);
  /// Returns how many of the device's multiprocessors a collective occupies.
  uint64_t getMultiprocessors(CollectiveOp collective);
  /// Returns the number of multiprocessors of the device, or 0 if collectives occupy none.
  uint64_t getMultiprocessors() const { return cluster.multiprocessors; }
  /// Returns the ranks of the first group of a collective. Without a mesh, a group has one rank.
  fsdpcommon::RankSpan getGroup(CollectiveOp collective);

private:
  bool isCopied(CollectiveOp collective, const fsdpcommon::RankSpan &group) const;
  const fsdpcommon::KernelTime &getKernelTime(func::FuncOp kernel);
  double getCollectiveSeconds(CollectiveOp collective, double bytes);
  double getCopyBandwidth(CopyOp copy);
  const Cluster &cluster;
  bool copies;
  SymbolTableCollection tables;
  DenseMap<Attribute, fsdpcommon::KernelTime> kernels; // by name
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_COST_H
