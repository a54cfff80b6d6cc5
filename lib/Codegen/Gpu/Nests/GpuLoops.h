//===- GpuLoops.h - General lowering for GPUs -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers kernels that no other GPU lowering supports.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_NESTS_GPULOOPS_H
#define FSDP_LIB_CODEGEN_GPU_NESTS_GPULOOPS_H

#include "fsdp/Codegen/Gpu/GpuImage.h"

namespace mlir::fsdp {

/// Lowers a kernel without fusing ops; see GpuLoops.cpp. Lowers and then erases `work`, which must
/// be a copy of `kernel`.
LogicalResult lowerGpuLoops(func::FuncOp work, func::FuncOp kernel, GpuKernel &info);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_NESTS_GPULOOPS_H
