//===- Attention.h - Lowering of attention kernels for CPUs -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTION_H
#define FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTION_H

#include "Codegen/Kernel/Lowering.h"
#include "fsdp/Codegen/CpuTarget.h"

namespace mlir::fsdp {

class AttentionOp;
class AttentionGradOp;

/// Lowers a kernel tile by tile. `op` is the kernel's attention op or gradient of attention, as
/// findAttention() returns it. The comment of lowerKernel() describes the result.
LogicalResult lowerAttentionKernel(func::FuncOp kernel, Operation *op, const CpuTarget &target,
                                   KernelInfo &info);

namespace attention {
LogicalResult lowerForward(func::FuncOp kernel, AttentionOp op, const CpuTarget &target,
                           KernelInfo &info);
LogicalResult lowerBackward(func::FuncOp kernel, AttentionGradOp op, const CpuTarget &target,
                            KernelInfo &info);
} // namespace attention

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTION_H
