//===- GpuLowering.h - The steps between kernels and cubins -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_IMAGE_GPULOWERING_H
#define FSDP_LIB_CODEGEN_GPU_IMAGE_GPULOWERING_H

#include "fsdp/Codegen/Gpu/GpuImage.h"

namespace mlir {
class RewritePatternSet;
}

namespace mlir::fsdp {

/// Loads the dialects of entries, and what writes them as LLVM IR.
void loadGpuDialects(MLIRContext &context);
/// Writes `kernel` as entries into `entries`; fails with a diagnostic.
LogicalResult lowerGpuKernel(func::FuncOp kernel, const GpuTarget &target, ModuleOp entries,
                             GpuKernel &info);
/// Math of f32 by the chip's approximations: see GpuMath.cpp. More benefit than
/// populateExpandMathPatterns.
void populateGpuMathPatterns(RewritePatternSet &patterns);
/// Entries to the LLVM dialect and NVVM.
LogicalResult lowerToNvvm(ModuleOp entries);
FailureOr<std::string> emitPtx(ModuleOp entries, const GpuTarget &target);

/// The path of ptxas: in PATH, CUDA_HOME/bin, CUDA_PATH/bin or /usr/local/cuda/bin; empty when
/// there is none.
std::string findPtxas();
/// Counts instructions of the cubin into the reports.
void countInstructions(GpuImage &image);
/// Fills cubin and reports of `image`.
LogicalResult assemble(GpuImage &image, StringRef ptxas, const GpuTarget &target,
                       const CodegenOptions &options, Location loc);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_IMAGE_GPULOWERING_H
