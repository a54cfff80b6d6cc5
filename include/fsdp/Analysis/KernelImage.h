//===- KernelImage.h - Kernels and their machine code -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What Plan, Codegen and Package know of a kernel: the marks on its function
// (docs/Pipeline.md §6), how its bindings lie in memory, and the linked image.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_KERNELIMAGE_H
#define FSDP_ANALYSIS_KERNELIMAGE_H

#include "mlir/IR/BuiltinTypes.h"
#include <string>
#include <vector>

namespace mlir::fsdp {

/// On a kernel function: that it is one, and the kind of its dispatch.
inline constexpr StringLiteral kernelAttr = "fsdp.kernel";
inline constexpr StringLiteral kindAttr = "fsdp.kind";
/// On its arguments: the result that is written to it, or over it.
inline constexpr StringLiteral outAttr = "fsdp.out";
inline constexpr StringLiteral inoutAttr = "fsdp.inout";

/// The storage type of an element: what a memref of a binding holds. i1 takes a
/// byte (0 or 1), index 8 bytes; all others stand for themselves.
Type getStorageType(Type element);
/// Bytes of a tensor or memref of static shape in memory.
int64_t getStorageBytes(ShapedType type);

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

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_KERNELIMAGE_H
