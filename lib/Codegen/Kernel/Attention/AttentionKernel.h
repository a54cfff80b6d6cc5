//===- AttentionKernel.h - Kernels that are one attention op ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONKERNEL_H
#define FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONKERNEL_H

#include "fsdp/IR/HeadLayout.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Returns true if a kernel consists of one attention op or its gradient, applied to the kernel's
/// arguments. Each target has a lowering for these kernels.
bool handlesAttentionKernel(func::FuncOp kernel);

/// Distances of heads and rows must be multiples of this number of bytes, so that tensor maps and
/// cp.async can copy rows.
inline constexpr int64_t headBytes = 16;
/// Returns the attention op or gradient of a kernel whose other ops say where its tensors of heads
/// lie in the kernel's arguments (findHeads()). Returns null for other kernels.
Operation *findAttention(func::FuncOp kernel);
/// Returns the argument in which the operand or result `heads` of findAttention(kernel) lies, and
/// its place there. Returns nothing for a result that the kernel does not return.
std::optional<PlacedHeads> placeHeads(func::FuncOp kernel, Value heads);
/// Rewrites attention ops of other kernels as linalg ops on full score matrices, which the general
/// lowering supports.
void decomposeAttention(func::FuncOp kernel);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONKERNEL_H
