//===- KernelImage.h - Kernels and their machine code -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What Codegen and Package know of a kernel (fsdp/IR/Kernels.h says what the IR
// knows of it): how it is launched, and the linked image.
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

/// One pass over [0, extent) in chunks that begin at multiples of tile. All
/// workers finish a phase before the next begins.
struct PhaseInfo {
  std::string symbol;
  int64_t extent = 1;
  int64_t tile = 1;
};

/// What the launcher of a kernel must know.
struct KernelInfo {
  std::string name;
  SmallVector<PhaseInfo> phases;
  /// Least bytes and "may be written" of each binding, in the order of the
  /// kernel's arguments (without the shared scratch).
  SmallVector<int64_t> bindingBytes;
  SmallVector<bool> writes;
  /// Of each binding, whether what is in it before the launch matters; one that is written and does
  /// not is written whole.
  SmallVector<bool> reads;
  /// Scratch that all workers of a launch share; when it is not 0, its address is an
  /// additional last binding.
  int64_t sharedBytes = 0;
  /// Scratch of each worker (the workspace argument).
  int64_t workerBytes = 0;
};

/// A shared object without undefined symbols (the oracle's may need libm).
struct Image {
  std::vector<char> elf;
  std::vector<KernelInfo> kernels;
  /// Features of the CPU that the code uses, in the spelling of /proc/cpuinfo.
  std::vector<std::string> isa;
};

/// What Codegen hands to Package: the image, and what it holds when it is for a GPU.
struct CompiledKernels {
  Image image;
  GpuCode gpu;
};

/// Bytes of scratch that a launch of a kernel needs.
struct KernelScratch {
  int64_t shared = 0; ///< for all workers
  int64_t worker = 0; ///< for each
};

/// Writes the scratch of each kernel into the module (`fsdp.kernel_scratch`), for
/// fsdp-add-workspace.
void setKernelScratch(ModuleOp module, ArrayRef<KernelInfo> kernels);
/// Returns what setKernelScratch wrote of a kernel; nothing where it wrote none.
KernelScratch getKernelScratch(ModuleOp module, StringRef kernel);

} // namespace mlir::fsdp

#endif // FSDP_IR_KERNELIMAGE_H
