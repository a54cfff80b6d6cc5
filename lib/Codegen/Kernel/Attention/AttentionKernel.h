//===- AttentionKernel.h - Kernels that are one attention op ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONKERNEL_H
#define FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONKERNEL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Whether a kernel is one attention op, or its gradients, on the kernel's arguments, and nothing
/// else: what a target's lowering of attention takes.
bool handlesAttentionKernel(func::FuncOp kernel);
/// Writes attention in any other kernel with whole scores, for the general lowering.
void decomposeAttention(func::FuncOp kernel);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONKERNEL_H
