//===- Cost.h - Estimated time of commands ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Estimates times by a roofline model. A kernel takes the time of its multiply-adds or of its
// memory traffic, whichever is longer. A collective takes the time of a ring (Cluster.h). The
// estimates rank plans; they do not predict measured times.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_COST_H
#define FSDP_ANALYSIS_COST_H

#include "fsdp/Analysis/Cluster.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Returns the cluster that the file `path` describes. Returns getCpuCluster() if `path` is empty,
/// and getGpuCluster() if `path` is `gpuClusterName`. Emits errors at their position in the file.
FailureOr<Cluster> loadCluster(MLIRContext *context, StringRef path);

/// Estimates the seconds of commands of the programs of one module on one rank.
class CostModel {
public:
  explicit CostModel(const Cluster &cluster) : cluster(cluster) {}

  /// Returns the seconds of one run of a command.
  /// - Loop: all its iterations, with commands one after another.
  /// - Collective: from its start to its end, alone on its links.
  /// - Wait: zero.
  double getSeconds(Operation *command);
  /// Returns the seconds of a collective of zero bytes. One launch of several collectives takes
  /// this time only once.
  double getLatency(CollectiveOp collective);
  /// Returns the seconds of a kernel. The attributes of its arguments determine which bytes the
  /// kernel moves.
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
