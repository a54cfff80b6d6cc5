//===- KernelReport.h - Predicted times of GPU kernels ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Adds up the launches of a step on a GPU: how many there are, the bytes that they move, and their
// times by the clocks of their plans (fsdpcommon/KernelTime.h).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_REPORT_KERNELREPORT_H
#define FSDP_REPORT_KERNELREPORT_H

#include "fsdp/Analysis/Cluster.h"
#include "fsdp/IR/KernelImage.h"
#include "llvm/Support/JSON.h"

namespace mlir::fsdp {

/// All runs of one kernel in a step, or of all kernels of one kind.
struct KernelRow {
  std::string kind, name, label; ///< label: of the first command that runs the kernel
  int64_t runs = 0, launches = 0;
  double bytes = 0;     ///< from and to memory
  double onceBytes = 0; ///< if each launch read and wrote each element of its tensors once
  double clocks = 0;    ///< of launches, if memory is fast enough
  double seconds = 0;   ///< 0 if the cluster does not have the chip
  std::string bound;    ///< what bounds the longest launch
  double longest = 0;   ///< seconds of that launch
};

struct KernelReport {
  std::string chip; ///< empty on a CPU
  std::string cluster;
  double clocksPerSecond = 0;            ///< 0: the cluster does not have the chip
  SmallVector<KernelRow> kinds, kernels; ///< in descending order of clocks
  KernelRow all;
};

/// Measures the launches of the program `step`. Returns an empty report on a CPU.
KernelReport measureKernels(ModuleOp planned, const CompiledKernels &kernels,
                            const Cluster &cluster);

/// Writes the JSON object `kernels`, or the table of kinds.
void writeKernels(const KernelReport &report, llvm::json::OStream &json);
void writeKernels(const KernelReport &report, raw_ostream &os);

} // namespace mlir::fsdp

#endif // FSDP_REPORT_KERNELREPORT_H
