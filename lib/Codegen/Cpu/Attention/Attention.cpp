//===- Attention.cpp - Lowering of attention kernels for CPUs ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The passes of lib/Fuse give each attention op on whole tensors a dispatch of its own. The kernel
// of such a dispatch contains only this op, and ops that say where its tensors of heads lie in the
// kernel's arguments. This file lowers such kernels tile by tile. In all other kernels, attention
// ops are decomposed into linalg ops.
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "Codegen/Kernel/Lowering.h"
#include "fsdp/IR/FSDP.h"

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult fsdp::lowerAttentionKernel(func::FuncOp kernel, Operation *op,
                                         const CpuTarget &target, KernelInfo &info) {
  if (auto forward = dyn_cast<AttentionOp>(op))
    return attention::lowerForward(kernel, forward, target, info);
  return attention::lowerBackward(kernel, cast<AttentionGradOp>(op), target, info);
}
