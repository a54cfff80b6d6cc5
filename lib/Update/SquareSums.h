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

/// Returns a 1-D tensor whose elements are the scalars.
Value createVector(OpBuilder &builder, Location loc, ArrayRef<Value> scalars);

/// Returns the sum of `counts.front()` terms, added in order. If `counts` has one element, the
/// terms are elements of `vector`. Otherwise each term is a sum that `counts.drop_front()`
/// describes in the same way. The first element of the sum is element `at`. Builds a chain of
/// additions, or a loop if there are more than 64 terms.
Value createSum(OpBuilder &builder, Location loc, Value vector, ArrayRef<int64_t> counts,
                OpFoldResult at);

} // namespace mlir::fsdp

#endif // FSDP_LIB_UPDATE_SQUARESUMS_H
