//===- LibraryGemm.h - Contractions computed by a library -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_GEMM_LIBRARYGEMM_H
#define FSDP_LIB_CODEGEN_GPU_GEMM_LIBRARYGEMM_H

#include "fsdp/Codegen/Gpu/GpuImage.h"

namespace mlir::fsdp::gemm {

/// Returns the cuBLASLt call that computes a contraction kernel including its epilogue. Returns
/// nothing if no call computes the kernel, or if the target does not use the library.
std::optional<GpuProduct> readAsLibraryProduct(func::FuncOp kernel, const GpuTarget &target);

/// Makes the library call the only launch of the kernel.
void lowerToLibraryProduct(func::FuncOp kernel, const GpuProduct &product, const GpuTarget &target,
                           GpuKernel &info);

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_GPU_GEMM_LIBRARYGEMM_H
