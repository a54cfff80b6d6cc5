//===- Decompositions.h - Ops of the dialect as linalg ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each overload of lowerToLinalg builds linalg ops that compute the results of an op, and returns
// one value per result. The caller replaces and erases the op.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_DECOMPOSITIONS_H
#define FSDP_IR_DECOMPOSITIONS_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

SmallVector<Value> lowerToLinalg(RandomOp op, OpBuilder &b);
SmallVector<Value> lowerToLinalg(GemmOp op, OpBuilder &b);
/// Lower attention and its gradient to ops that store all scores in memory. Tests compare fused
/// attention kernels with these ops.
SmallVector<Value> lowerToLinalg(AttentionOp op, OpBuilder &b);
SmallVector<Value> lowerToLinalg(AttentionGradOp op, OpBuilder &b);

/// Clones the ops of `region` at the builder's insertion point, with `arguments` in place of its
/// leading arguments and `captures` in place of all others. Returns the yielded value.
Value inlineFunction(OpBuilder &b, Region &region, ValueRange arguments, ValueRange captures);

} // namespace mlir::fsdp

#endif // FSDP_IR_DECOMPOSITIONS_H
