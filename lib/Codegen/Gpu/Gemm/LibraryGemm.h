//===- LibraryGemm.h - Contractions that a library has ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_GEMM_LIBRARYGEMM_H
#define FSDP_LIB_CODEGEN_GPU_GEMM_LIBRARYGEMM_H

#include "fsdp/Codegen/Gpu/GpuImage.h"

namespace mlir::fsdp::gemm {

/// The one call of cuBLASLt that a contraction kernel is, with all that is after its sums; nothing
/// when there is none, or the target is not to use it.
std::optional<GpuProduct> readAsLibraryProduct(func::FuncOp kernel, const GpuTarget &target);

/// Makes that call the kernel's launch.
void lowerToLibraryProduct(func::FuncOp kernel, const GpuProduct &product, const GpuTarget &target,
                           GpuKernel &info);

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_GPU_GEMM_LIBRARYGEMM_H
