//===- Sm90Backward.h - Gradients of attention on wgmma ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_SM90BACKWARD_H
#define FSDP_LIB_CODEGEN_GPU_SM90BACKWARD_H

#include "KeyScores.h"
#include "Sm90Attention.h"

namespace mlir::fsdp::attention {

/// What a block of threads for dK and dV needs: registers of a thread that consumes, an estimate, and bytes of shared memory.
Sm80Needs sm90KeyNeeds(const Sm90Keys &config, const Shape &shape);
/// How dK and dV of `op` are cut for wgmma; nothing when they are not for it.
std::optional<Sm90Keys> chooseSm90Keys(AttentionGradOp op, const GpuTarget &target);
/// Writes the entry of dK and dV, and its launch.
void lowerSm90Keys(const Sm80Problem &problem, const Sm90Keys &config, StringRef symbol, ModuleOp entries, GpuKernel &info);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_SM90BACKWARD_H
