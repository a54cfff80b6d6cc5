//===- GpuImage.h - Kernels for a GPU ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the functions of Codegen for GPUs. `compileGpuImage` compiles the supported kernel
// functions of a module to PTX, and to a cubin if ptxas is found:
//
//   kernel            func.func private @k(tensors..) -> tensors {fsdp.kernel}
//     lowerGpuKernel    |
//   entries           llvm.func @k(pointers..) {nvvm.kernel}: scf, arith, math, llvm, nvvm
//     lowerToNvvm       |
//   LLVM dialect and NVVM
//     emitPtx           |
//   PTX
//     assemble          |   ptxas, if it is found
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

/// A tensor from which a kernel copies tiles by a tensor map (cuTensorMapEncodeTiled) with 128-byte
/// swizzle. For elements outside the tensor, the copy contains 0. Dimension 0 is contiguous in
/// memory.
struct GpuTensorMap {
  /// Index of the binding that contains the tensor. If the tensor is in the scratch, the index is
  /// the number of bindings.
  int64_t binding = 0;
  int64_t offset = 0; ///< offset of the first element in the binding, in bytes
  GpuTensorType type = GpuTensorType::BF16;
  SmallVector<int64_t> sizes;   ///< sizes of the dimensions, in elements
  SmallVector<int64_t> strides; ///< strides of dimensions 1 and up, in bytes
  SmallVector<int64_t> box;     ///< sizes of the tile that one copy transfers, in elements
};

/// One launch of an entry. The arguments of the entry are the bindings of the kernel in order, then
/// the scratch if the kernel has one, then the tensor maps by value.
struct GpuLaunch {
  std::string symbol;
  int64_t blocks = 1;      ///< number of blocks in x
  int64_t threads = 32;    ///< number of threads per block
  int64_t sharedBytes = 0; ///< dynamic shared memory, in bytes
  std::vector<GpuTensorMap> maps = {};
  int64_t cluster = 1;     ///< number of blocks per cluster in x; divides `blocks`
  int64_t copyThreads = 0; ///< number of threads per block that only copy data
  /// The matrix product that a library computes; unset if the launch runs an entry.
  std::optional<GpuProduct> product = {};
  GpuCost cost = {}; ///< cost that the model of the plan estimates
};

/// The launches of one kernel, which run one after another.
struct GpuKernel {
  KernelInfo info; ///< only the fields name, bindingBytes and writes are set
  std::vector<GpuLaunch> launches;
  int64_t scratchBytes = 0; ///< scratch in global memory: 256-byte aligned, uninitialised
  /// True if f32 factors are rounded to TF32. If the chip has wgmma but the kernel does not use it,
  /// the reason why.
  bool roundsToTF32 = false;
  std::string whyNoWarpgroups = {};
};

/// Resource use of an entry as reported by ptxas, and instruction counts of the machine code.
struct EntryReport {
  std::string symbol;
  int64_t registers = 0, stackBytes = 0, spillStoreBytes = 0, spillLoadBytes = 0, sharedBytes = 0,
          barriers = 0;
  int64_t instructions = 0;     ///< number of instructions of the entry
  int64_t loopInstructions = 0, ///< number of instructions of the main loop
      loopMma = 0;              ///< number of instructions of the main loop that multiply matrices
  /// Number of cycles for which the tensor core of one scheduler is busy with the `loopMma`
  /// instructions.
  int64_t loopTensorCycles = 0;
  /// In one turn of the main loop: exponentials; those that are issued while a product of a
  /// warpgroup is in flight; all instructions that are issued while none is; barriers of threads.
  int64_t loopExponentials = 0, loopOverlapped = 0, loopIdle = 0, loopBarriers = 0;
  int64_t loopFences = 0; ///< fences of all memory of the GPU, in all loops
};

/// The texts and code that compileGpuImage() stores in the image.
enum class GpuOutput {
  Mlir,  ///< PTX, and the MLIR text of the entries before lowering
  Ptx,   ///< PTX alone
  Cubin, ///< PTX, and a cubin if ptxas is found
};

struct GpuImage {
  std::string chip;
  std::string mlir; ///< text of the entries before they are lowered; empty unless GpuOutput::Mlir
  std::string ptx;
  std::vector<char> cubin; ///< empty without ptxas
  std::vector<GpuKernel> kernels;
  std::vector<EntryReport> reports; ///< one report per entry, in order; empty without ptxas
};

/// Alignment in bytes of heads and rows of attention (TargetInfo::getHeadAlignment()). Tensor maps
/// and cp.async copy rows with this alignment only.
inline constexpr int64_t headBytes = 16;

/// Returns the reason why `kernel` cannot be compiled for the chip, or nothing if it can.
std::optional<std::string> whyNoGpuKernel(func::FuncOp kernel, const GpuTarget &target);

/// Compiles each supported kernel (fsdp.kernel) of `module`, which is not changed. Emits a warning
/// with the reason at each unsupported kernel. Fails if a kernel breaks the contract of
/// docs/explanation/pipeline.md §6, if ptxas rejects the PTX, or if registers spill and the options
/// forbid spills.
FailureOr<GpuImage> compileGpuImage(ModuleOp module, const GpuTarget &target,
                                    const CodegenOptions &options = {},
                                    GpuOutput output = GpuOutput::Cubin);

/// Compiles the kernels of a planned module for the GPU that `options` names. If `code` is false,
/// only computes the kernels' launches and scratch sizes.
FailureOr<CompiledKernels> compileForGpu(ModuleOp planned, const CodegenOptions &options,
                                         bool code);

/// Prints the supported kernels of a planned module to `os`. Emits a warning at each unsupported
/// kernel.
LogicalResult printGpuKernels(ModuleOp planned, const CodegenOptions &options, EmitKind what,
                              llvm::raw_ostream &os);

/// Returns the properties of the GPU that other stages read, or null if the options name no GPU.
std::unique_ptr<TargetInfo> createGpuTargetInfo(const CodegenOptions &options);

/// Prints the kernels of `image` and their launches as comments.
void printLaunches(const GpuImage &image, llvm::raw_ostream &os);
/// Prints a table of the costs by the model of the plan, one line per launch.
void printCosts(const GpuImage &image, llvm::raw_ostream &os);
/// Prints a table of the reports of ptxas, one line per launch.
void printStatistics(const GpuImage &image, llvm::raw_ostream &os);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_GPU_GPUIMAGE_H
