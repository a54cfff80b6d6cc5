//===- Decompositions.h - Ops of the dialect as linalg ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each function builds the definition of an op from linalg ops at the builder's insertion point and
// returns one value per result of the op. The caller replaces and erases the op.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_DECOMPOSITIONS_H
#define FSDP_IR_DECOMPOSITIONS_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

SmallVector<Value> lowerToLinalg(RandomOp op, OpBuilder &b);
SmallVector<Value> lowerToLinalg(GemmOp op, OpBuilder &b);
/// Lower attention and its gradient to ops that hold all scores in memory. Fused attention kernels
/// are compared with these ops.
SmallVector<Value> lowerToLinalg(AttentionOp op, OpBuilder &b);
SmallVector<Value> lowerToLinalg(AttentionGradOp op, OpBuilder &b);

/// Clones the function in `region` at the builder's insertion point. Replaces its leading arguments
/// by `arguments`, and its other arguments by `captures`. Returns the yielded value.
Value inlineFunction(OpBuilder &b, Region &region, ValueRange arguments, ValueRange captures);

} // namespace mlir::fsdp

#endif // FSDP_IR_DECOMPOSITIONS_H
