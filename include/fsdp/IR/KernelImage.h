//===- KernelImage.h - Kernels and their machine code -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines the interface between Codegen and Package: the linked image, and the launch parameters of
// each kernel. (fsdp/IR/Kernels.h has the attributes of kernels in the IR.)
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_KERNELIMAGE_H
#define FSDP_IR_KERNELIMAGE_H

#include "fsdp/IR/GpuCode.h"
#include "fsdp/IR/Kernels.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace mlir::fsdp {

/// A phase of a kernel: one pass over [0, extent) in chunks that begin at multiples of `tile`. All
/// workers finish a phase before the next one begins.
struct PhaseInfo {
  std::string symbol;
  int64_t extent = 1;
  int64_t tile = 1;
};

/// Launch parameters of a kernel.
struct KernelInfo {
  std::string name;
  SmallVector<PhaseInfo> phases;
  /// For each binding, the least size in bytes, and whether the kernel may write the binding.
  /// Bindings are the kernel's arguments, in order, without the shared scratch.
  SmallVector<int64_t> bindingBytes;
  SmallVector<bool> writes;
  /// For each binding, whether the kernel reads its contents. If a binding is written but not read,
  /// the kernel overwrites it completely.
  SmallVector<bool> reads;
  /// Bytes of scratch that all workers of a launch share. If not 0, the address of the scratch is
  /// an additional last binding.
  int64_t sharedBytes = 0;
  /// Bytes of scratch per worker (the workspace argument).
  int64_t workerBytes = 0;
};

/// A shared object without undefined symbols (except those of libm in the reference).
struct Image {
  std::vector<char> elf;
  std::vector<KernelInfo> kernels;
  /// CPU features that the code requires, with the names of /proc/cpuinfo.
  std::vector<std::string> isa;
};

/// Result of Codegen: the image, and a description of its GPU code, if any.
struct CompiledKernels {
  Image image;
  GpuCode gpu;
};

/// Scratch of one launch of a kernel.
struct KernelScratch {
  int64_t shared = 0; ///< bytes for all workers together
  int64_t worker = 0; ///< bytes for each worker
};

/// Records the scratch of each kernel on the module (`fsdp.kernel_scratch`) for fsdp-add-workspace.
void setKernelScratch(ModuleOp module, ArrayRef<KernelInfo> kernels);
/// Returns the recorded scratch of a kernel; zeros if there is no record.
KernelScratch getKernelScratch(ModuleOp module, StringRef kernel);

} // namespace mlir::fsdp

#endif // FSDP_IR_KERNELIMAGE_H
