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

/// Returns a vector of `type`. An element is the sum of the squares of one shard of a gradient.
Value createSquares(OpBuilder &builder, Location loc, Value grad, int64_t shardSize, Type type);

/// Returns a 1-D tensor whose elements are the scalars.
Value createVector(OpBuilder &builder, Location loc, ArrayRef<Value> scalars);

/// Returns true if ranks of the mesh axis `axis` have different parts of the gradient of `unit`. On
/// the axis `tensor`, these are the units of which a rank has slices.
bool isGradientSplit(UnitOp unit, StringRef axis);

/// Builds a sum of consecutive elements of `vector`, beginning with element `at`. The sum has
/// `counts.front()` terms, which are added in order. If `counts` has one element, each term is one
/// element of `vector`. Otherwise each term is a sum that createSum() builds with
/// `counts.drop_front()`. The additions are a chain of ops, or a loop if there are more than 64
/// terms.
Value createSum(OpBuilder &builder, Location loc, Value vector, ArrayRef<int64_t> counts,
                OpFoldResult at);

} // namespace mlir::fsdp

#endif // FSDP_LIB_UPDATE_SQUARESUMS_H
