//===- GpuImage.h - Kernels for a GPU ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the stage offers for GPUs: `compileGpuImage` turns the kernel functions of a module
// that it knows how to write into PTX, and that by ptxas into a cubin:
//
//   kernel            func.func private @k(tensors..) -> tensors {fsdp.kernel}
//     lowerGpuKernel    |
//   entries           llvm.func @k(pointers..) {nvvm.kernel}: scf, arith, math, llvm, nvvm
//     lowerToNvvm       |
//   LLVM dialect and NVVM
//     emitPtx           |
//   PTX
//     assemble          |   ptxas, where there is one
//   cubin
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_GPU_GPUIMAGE_H
#define FSDP_CODEGEN_GPU_GPUIMAGE_H

#include "fsdp/Codegen/Gpu/GpuTarget.h"
#include "fsdp/IR/KernelImage.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {
class TargetInfo;

/// A tensor that a kernel copies tiles of (cuTensorMapEncodeTiled): its swizzle is that of 128
/// bytes, what does not exist is 0. Dimension 0 is the one whose elements are neighbours.
struct GpuTensorMap {
  int64_t binding = 0,
          offset = 0; ///< where it begins: the one after the last binding is the scratch; in bytes
  bool isBf16 = true; ///< or f16
  SmallVector<int64_t> sizes;   ///< in elements
  SmallVector<int64_t> strides; ///< in bytes, of dimensions 1 and on
  SmallVector<int64_t> box;     ///< that is copied at a time
};

/// One launch of an entry. Its arguments are the bindings of the kernel, in order, then the
/// scratch when there is some, then its tensor maps by value.
struct GpuLaunch {
  std::string symbol;
  int64_t blocks = 1;      ///< in x
  int64_t threads = 32;    ///< of a block
  int64_t sharedBytes = 0; ///< that the launch adds
  std::vector<GpuTensorMap> maps = {};
  int64_t cluster = 1;                    ///< blocks in x that run together; divides their number
  int64_t copyThreads = 0;                ///< of a block, that do nothing but fetch for the others
  std::optional<GpuProduct> product = {}; ///< a library's, and no entry
};

/// What the launcher of a kernel must know; launches run one after the other.
struct GpuKernel {
  KernelInfo info; ///< name, bindingBytes, writes; no phases
  std::vector<GpuLaunch> launches;
  int64_t scratchBytes = 0; ///< in global memory, aligned to 256 bytes; need not be initialised
};

/// What ptxas says of an entry, and what is in its machine code.
struct EntryReport {
  std::string symbol;
  int64_t registers = 0, stackBytes = 0, spillStoreBytes = 0, spillLoadBytes = 0, sharedBytes = 0,
          barriers = 0;
  int64_t instructions = 0; ///< in all
  int64_t loopInstructions = 0,
          loopMma = 0;         ///< of the main loop, and how many of them multiply matrices
  int64_t loopTensorTurns = 0; ///< that those take a scheduler's tensor core
};

/// How far kernels for a GPU are compiled.
enum class GpuOutput {
  Mlir,  ///< PTX, and the text of the entries before their lowering
  Ptx,   ///< PTX alone
  Cubin, ///< PTX, and what ptxas makes of it where there is one
};

struct GpuImage {
  std::string chip;
  std::string mlir; ///< the entries before their lowering, as text; where it is to be kept
  std::string ptx;
  std::vector<char> cubin; ///< empty without ptxas
  std::vector<GpuKernel> kernels;
  std::vector<EntryReport> reports; ///< of the entries, in order; empty without ptxas
};

/// Why there is no kernel of this kind for the chip; nothing when there is one.
std::optional<std::string> whyNoGpuKernel(func::FuncOp kernel, const GpuTarget &target);

/// Compiles each kernel (fsdp.kernel) of `module` that there is code for, which is left as it is;
/// of each other one a warning at its place says why not. Fails when a kernel's form is broken,
/// when ptxas rejects the text, and on spills when asked to.
FailureOr<GpuImage> compileGpuImage(ModuleOp module, const GpuTarget &target,
                                    const CodegenOptions &options = {},
                                    GpuOutput output = GpuOutput::Cubin);

/// Compiles the kernels of a planned module for the GPU that the options name; without `code` only
/// their launches and scratch.
FailureOr<CompiledKernels> compileForGpu(ModuleOp planned, const CodegenOptions &options,
                                         bool code);

/// Prints the kernels of a planned module that there is GPU code for. A warning at its place names
/// each other one.
LogicalResult printGpuKernels(ModuleOp planned, const CodegenOptions &options, EmitKind what,
                              llvm::raw_ostream &os);

/// Returns what stages ask about a GPU, or null where the options name no GPU.
std::unique_ptr<TargetInfo> createGpuTargetInfo(const CodegenOptions &options);

/// Kernels and their launches, as comments.
void printLaunches(const GpuImage &image, llvm::raw_ostream &os);
/// A table of what ptxas says, one line per launch.
void printStatistics(const GpuImage &image, llvm::raw_ostream &os);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_GPU_GPUIMAGE_H
