//===- GpuLoops.h - Any kernel as loops of threads --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What no other lowering takes.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_NESTS_GPULOOPS_H
#define FSDP_LIB_CODEGEN_GPU_NESTS_GPULOOPS_H

#include "fsdp/Codegen/Gpu/GpuImage.h"

namespace mlir::fsdp {

/// Lowers `work`, a copy of any kernel, as it stands: see GpuLoops.cpp. Gives up `work`.
LogicalResult lowerGpuLoops(func::FuncOp work, func::FuncOp kernel, GpuKernel &info);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_NESTS_GPULOOPS_H
