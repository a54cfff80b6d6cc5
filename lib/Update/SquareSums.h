//===- SquareSums.h - Sums of squares of gradients -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_UPDATE_SQUARESUMS_H
#define FSDP_LIB_UPDATE_SQUARESUMS_H

#include "Programs.h"
#include "mlir/IR/Builders.h"

namespace mlir::fsdp {

/// Returns the type in which squares of gradients are summed: f64 if a gradient is f64, else f32.
Type getSquaresType(const Program &program);

/// Returns the sum of squares of each shard of a gradient, as a vector of `type`.
Value createSquares(OpBuilder &builder, Location loc, Value grad, int64_t shardSize, Type type);

/// Returns scalars as the elements of one tensor.
Value createVector(OpBuilder &builder, Location loc, ArrayRef<Value> scalars);

/// Returns the sum, in order, of `counts.front()` terms, where each term is an element or,
/// recursively, a sum with `counts.drop_front()`. The first element is `at`. Builds a chain of
/// additions, or a loop for more than 64 terms.
Value createSum(OpBuilder &builder, Location loc, Value vector, ArrayRef<int64_t> counts,
                OpFoldResult at);

} // namespace mlir::fsdp

#endif // FSDP_LIB_UPDATE_SQUARESUMS_H
