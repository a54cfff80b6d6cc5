//===- Attention.cpp - Kernels that hold attention --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Fuse gives attention a dispatch of its own, on whole tensors: a kernel with one op.
// That is lowered tile by tile; attention in any other company is written out.
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "Codegen/Kernel/Lowering.h"
#include "fsdp/IR/FSDP.h"

using namespace mlir;
using namespace mlir::fsdp;

/// The op, when it is all that the kernel holds.
LogicalResult fsdp::lowerAttentionKernel(func::FuncOp kernel, const CpuTarget &target,
                                         KernelInfo &info) {
  Operation *op = &kernel.front().front();
  if (auto forward = dyn_cast<AttentionOp>(op))
    return attention::lowerForward(kernel, forward, target, info);
  return attention::lowerBackward(kernel, cast<AttentionGradOp>(op), target, info);
}
