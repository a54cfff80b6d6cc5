//===- MeasureGpu.h - What kernels for a GPU need ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_GPU_MEASUREGPU_H
#define FSDP_CODEGEN_GPU_MEASUREGPU_H

#include "fsdp/Codegen/Gpu/GpuImage.h"

namespace mlir::fsdp {

/// Why there is no kernel for this attention, or these gradients of it, before it is in a kernel;
/// any other op has one.
std::optional<std::string> whyNoGpuAttention(Operation *op, const GpuTarget &target);
/// Launches and scratch of every kernel, as compileGpuImage has them, without text.
FailureOr<GpuImage> measureGpuKernels(ModuleOp module, const GpuTarget &target);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_GPU_MEASUREGPU_H
