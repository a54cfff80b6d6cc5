//===- GpuBackward.h - Launches of the backward pass ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chooses the kernels of each chip and emits the launches in order.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_GPUBACKWARD_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_GPUBACKWARD_H

#include "Sm80Attention.h"

namespace mlir::fsdp::attention {

/// Lowers a kernel that consists of the gradient of attention, for which GPU kernels must exist
/// (see whyNoGpuAttention()).
LogicalResult lowerGpuBackward(func::FuncOp kernel, AttentionGradOp op, const GpuTarget &target,
                               ModuleOp entries, GpuKernel &info);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_GPUBACKWARD_H
