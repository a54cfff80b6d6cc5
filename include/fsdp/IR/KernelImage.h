//===- KernelImage.h - Kernels and their machine code -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines the interface between Codegen and Package: the linked image, and the launch parameters of
// each kernel. (fsdp/IR/Kernels.h declares the attributes of kernels in the IR.)
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

/// A phase of a kernel: one pass over [0, extent) in chunks that begin at multiples of `tile`. The
/// next phase begins when all workers have finished this phase.
struct PhaseInfo {
  std::string symbol;
  int64_t extent = 1;
  int64_t tile = 1;
};

/// Launch parameters of a kernel.
struct KernelInfo {
  std::string name;
  SmallVector<PhaseInfo> phases;
  /// `bindingBytes` contains the least size in bytes of each binding, and `writes` states for each
  /// binding whether the kernel may write it. The bindings are the arguments of the kernel in their
  /// order, without the address of the shared scratch.
  SmallVector<int64_t> bindingBytes;
  SmallVector<bool> writes;
  /// For each binding, whether the kernel reads its contents. If a binding is written but not read,
  /// the kernel overwrites it completely.
  SmallVector<bool> reads;
  /// Bytes of scratch that all workers of a launch share. If the number is not 0, the last argument
  /// of the kernel is the address of this scratch.
  int64_t sharedBytes = 0;
  /// Bytes of scratch per worker. The workspace argument points to this scratch.
  int64_t workerBytes = 0;
};

/// A shared object without undefined symbols (except those of libm for the target `reference`).
struct Image {
  std::vector<char> elf;
  std::vector<KernelInfo> kernels;
  /// Names of the CPU features that the code requires, as /proc/cpuinfo spells them.
  std::vector<std::string> isa;
};

/// Result of Codegen: the image and, for a GPU target, the description of its GPU code.
struct CompiledKernels {
  Image image;
  GpuCode gpu;
};

/// Scratch of one launch of a kernel.
struct KernelScratch {
  int64_t shared = 0; ///< bytes that all workers share
  int64_t worker = 0; ///< bytes per worker
};

/// Stores the scratch of each kernel in the module attribute `fsdp.kernel_scratch`.
void setKernelScratch(ModuleOp module, ArrayRef<KernelInfo> kernels);
/// Returns the scratch of a kernel that `fsdp.kernel_scratch` contains. Returns zeros if the
/// attribute has no entry for the kernel.
KernelScratch getKernelScratch(ModuleOp module, StringRef kernel);

} // namespace mlir::fsdp

#endif // FSDP_IR_KERNELIMAGE_H
