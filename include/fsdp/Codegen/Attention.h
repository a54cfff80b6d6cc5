//===- Attention.h - Kernels that hold attention ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_ATTENTION_H
#define FSDP_CODEGEN_ATTENTION_H

#include "fsdp/Codegen/Codegen.h"

namespace mlir::fsdp {

class AttentionOp;
class AttentionGradOp;

/// Whether lowerAttentionKernel takes this kernel: one attention op on its arguments, nothing else.
bool handlesAttentionKernel(func::FuncOp kernel);
/// Lowers it tile by tile; see lowerKernel.
LogicalResult lowerAttentionKernel(func::FuncOp kernel, const CpuTarget &target, KernelInfo &info);
/// Writes attention in any other kernel with whole scores, for the general lowering.
void decomposeAttention(func::FuncOp kernel);

namespace attention {
LogicalResult lowerForward(func::FuncOp kernel, AttentionOp op, const CpuTarget &target,
                           KernelInfo &info);
LogicalResult lowerBackward(func::FuncOp kernel, AttentionGradOp op, const CpuTarget &target,
                            KernelInfo &info);
} // namespace attention

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_ATTENTION_H
