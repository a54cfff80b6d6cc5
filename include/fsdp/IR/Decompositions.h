//===- Decompositions.h - Raised ops as linalg ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What an op means, written with linalg at the builder's place. Each returns
// the values of the op's results; the op itself stays.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_DECOMPOSITIONS_H
#define FSDP_IR_DECOMPOSITIONS_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

SmallVector<Value> lowerToLinalg(RandomOp op, OpBuilder &b);
SmallVector<Value> lowerToLinalg(GemmOp op, OpBuilder &b);
/// Scores whole in memory: what a fused kernel is compared with.
SmallVector<Value> lowerToLinalg(AttentionOp op, OpBuilder &b);
SmallVector<Value> lowerToLinalg(AttentionGradOp op, OpBuilder &b);

/// A copy of the function in `region` at the builder's place, for these values of its
/// leading arguments; captured tensors stand for themselves. Returns what it yields.
Value inlineFunction(OpBuilder &b, Region &region, ValueRange arguments, ValueRange captures);

} // namespace mlir::fsdp

#endif // FSDP_IR_DECOMPOSITIONS_H
