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

/// Returns the attention op or gradient of a kernel whose other ops say where its tensors of heads
/// lie in the kernel's arguments (findHeads()). Distances of heads and rows must be multiples of
/// `bytes` (TargetInfo::getHeadAlignment()). Returns null for other kernels. Each target has a
/// lowering for kernels for which the result is not null.
Operation *findAttention(func::FuncOp kernel, int64_t bytes);
/// Returns the argument in which the operand or result `heads` of findAttention(kernel) lies, and
/// its place there. Returns nothing for a result that the kernel does not return.
std::optional<PlacedHeads> placeHeads(func::FuncOp kernel, Value heads);
/// Rewrites attention ops of other kernels as linalg ops on full score matrices, which the general
/// lowering supports.
void decomposeAttention(func::FuncOp kernel);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONKERNEL_H
