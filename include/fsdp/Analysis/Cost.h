//===- Cost.h - Estimated time of commands ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A roofline: a kernel takes as long as its multiply-adds or its bytes, whichever is
// longer; a collective is a ring (Cluster.h). Meant to rank plans, not to foretell seconds.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_COST_H
#define FSDP_ANALYSIS_COST_H

#include "fsdp/Analysis/Cluster.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// That of `path`, of CPU ranks where it is empty, or getGpuCluster() by its name. Failure: said as
/// a diagnostic, where the file is wrong.
FailureOr<Cluster> loadCluster(MLIRContext *context, StringRef path);

/// Seconds of the commands of programs of one module on one rank.
class CostModel {
public:
  explicit CostModel(const Cluster &cluster) : cluster(cluster) {}

  /// Of one run of a command. A loop: all its iterations, one command after the other. A
  /// collective: from its start to its end, alone on its links. A wait: nothing.
  double getSeconds(Operation *command);
  /// Of a collective without bytes: what a launch of several pays once.
  double getLatency(CollectiveOp collective);
  /// Of a kernel: by the marks of its arguments.
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
