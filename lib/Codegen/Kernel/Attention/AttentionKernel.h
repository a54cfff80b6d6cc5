//===- AttentionKernel.h - Kernels that are one attention op ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONKERNEL_H
#define FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONKERNEL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Returns true if a kernel consists of one attention op or its gradient, applied to the kernel's
/// arguments. Each target has a lowering for these kernels.
bool handlesAttentionKernel(func::FuncOp kernel);
/// Rewrites attention ops of other kernels as linalg ops on full score matrices, which the general
/// lowering supports.
void decomposeAttention(func::FuncOp kernel);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONKERNEL_H
