//===- MeasureGpu.h - Launches and scratch of GPU kernels -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_GPU_MEASUREGPU_H
#define FSDP_CODEGEN_GPU_MEASUREGPU_H

#include "fsdp/Codegen/Gpu/GpuImage.h"

namespace mlir::fsdp {

/// If `op` is an attention op or its gradient and has no GPU kernel, returns the reason for this.
/// Otherwise returns nothing. `op` need not be inside a kernel function.
std::optional<std::string> whyNoGpuAttention(Operation *op, const GpuTarget &target);
/// Computes the launches and the scratch size of every kernel. Returns what compileGpuImage()
/// returns, but without PTX.
FailureOr<GpuImage> measureGpuKernels(ModuleOp module, const GpuTarget &target);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_GPU_MEASUREGPU_H
