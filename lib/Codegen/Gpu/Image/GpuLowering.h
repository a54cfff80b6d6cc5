//===- GpuLowering.h - Steps from kernels to cubins -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_IMAGE_GPULOWERING_H
#define FSDP_LIB_CODEGEN_GPU_IMAGE_GPULOWERING_H

#include "fsdp/Codegen/Gpu/GpuImage.h"

namespace mlir {
class Block;
class RewritePatternSet;
} // namespace mlir

namespace mlir::fsdp {

/// Loads the dialects of GPU entry functions, and registers their translations to LLVM IR.
void loadGpuDialects(MLIRContext &context);
/// Emits the entries of `kernel` into `entries` and describes its launches in `info`. Emits a
/// diagnostic on failure.
LogicalResult lowerGpuKernel(func::FuncOp kernel, const GpuTarget &target, ModuleOp entries,
                             GpuKernel &info);
/// Adds patterns that replace f32 math ops by approximate instructions of the GPU; see GpuMath.cpp.
/// These patterns take precedence over the patterns of populateExpandMathPatterns().
void populateGpuMathPatterns(RewritePatternSet &patterns);
/// Adds patterns that round to bf16 and compute maxima by instructions of the GPU. These patterns
/// take precedence over the patterns of populateLegaliseFloatsPatterns().
void populateGpuFloatPatterns(RewritePatternSet &patterns);
/// Rewrites expressions of GELU, SiLU and their derivatives in the body of an elementwise
/// operation; see SimplifyActivations.cpp.
void simplifyActivations(Block &body);
/// Lowers entries to the LLVM dialect and NVVM.
LogicalResult lowerToNvvm(ModuleOp entries);
/// Emits the entries as PTX. Emits a diagnostic on failure.
FailureOr<std::string> emitPtx(ModuleOp entries, const GpuTarget &target);

/// Returns the path of ptxas, which is searched in PATH, CUDA_HOME/bin, CUDA_PATH/bin and
/// /usr/local/cuda/bin. Returns an empty string if ptxas is not found.
std::string findPtxas();
/// Counts instructions in the cubin of `image`, and sets the counts in the reports of `image`.
void countInstructions(GpuImage &image);
/// Assembles the PTX and sets the cubin and the reports of `image`. Emits a diagnostic on failure.
LogicalResult assemble(GpuImage &image, StringRef ptxas, const GpuTarget &target,
                       const CodegenOptions &options, Location loc);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_IMAGE_GPULOWERING_H
