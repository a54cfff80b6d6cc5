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
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Returns the cluster that the file `path` describes. Returns getCpuCluster() if `path` is empty,
/// and getGpuCluster() if `path` is `gpuClusterName`. If the file is invalid, emits an error at the
/// position of the mistake in the file.
FailureOr<Cluster> loadCluster(MLIRContext *context, StringRef path);

/// Estimates the seconds that one rank needs for a command of a program.
class CostModel {
public:
  explicit CostModel(const Cluster &cluster) : cluster(cluster) {}

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
  double getKernelSeconds(func::FuncOp kernel);

private:
  double getCollectiveSeconds(CollectiveOp collective, double bytes);
  double getCopyBandwidth(CopyOp copy);
  const Cluster &cluster;
  SymbolTableCollection tables;
  DenseMap<Attribute, double> kernels; // by name
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_COST_H
