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

#include "fsdp/IR/TensorSplit.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

SmallVector<Value> lowerToLinalg(linalg::SoftmaxOp op, OpBuilder &b);
/// Lowers a cross-entropy. If ranks have slices of the classes, adds an all_reduce.
SmallVector<Value> lowerToLinalg(CrossEntropyOp op, OpBuilder &b);
SmallVector<Value> lowerToLinalg(CrossEntropyGradOp op, OpBuilder &b);
SmallVector<Value> lowerToLinalg(RandomOp op, OpBuilder &b);
SmallVector<Value> lowerToLinalg(GemmOp op, OpBuilder &b);
/// Lower an attention op or its gradient op to ops that store all scores in memory. Tests compare
/// the results of fused attention kernels with the results of these ops.
SmallVector<Value> lowerToLinalg(AttentionOp op, OpBuilder &b);
SmallVector<Value> lowerToLinalg(AttentionGradOp op, OpBuilder &b);

/// Clones the ops of `region` at the builder's insertion point. Replaces the leading arguments of
/// the region by `arguments`, and all other arguments by `captures`. Returns the value that the
/// cloned region yields.
Value inlineFunction(OpBuilder &b, Region &region, ValueRange arguments, ValueRange captures);

/// Returns the part of `whole` that a rank of the axis `tensor` has of each block of a split
/// dimension, whose blocks are equal and have `parts` parts. `coordinate` contains the coordinate
/// of the rank. An fsdp.own_piece cannot do this, because a slice of a buffer in an artifact
/// depends on the axes `shard` and `replicate` only.
Value buildOwnPart(OpBuilder &b, Value whole, const TensorSplit &split, int64_t parts,
                   Value coordinate);

/// Converts the float `v` to the float type `to`, which may be narrower or wider.
Value convertFloat(OpBuilder &b, Location loc, Value v, Type to);

/// Lets a function of attention count rows, keys or heads in the whole dimension, of which a rank
/// has `size` indices and of which the function reads the index `own`. The argument `coordinate` of
/// the function contains the coordinate c of one of `ranks` ranks. Index i becomes i + c · size or,
/// if the indices of a rank are stripes, i · ranks + c.
void countInWhole(Location loc, BlockArgument own, BlockArgument coordinate, int64_t ranks,
                  int64_t size, bool striped);

} // namespace mlir::fsdp

#endif // FSDP_IR_DECOMPOSITIONS_H
