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

/// Returns the sum of the squares of a gradient, a scalar of `type`. The gradient consists of
/// pieces of `pieceSize` elements. `counts` are the numbers of terms of nested sums of pieces, the
/// outermost one first.
Value createSquares(OpBuilder &builder, Location loc, Value grad, int64_t pieceSize,
                    ArrayRef<int64_t> counts, Type type);

/// Returns a 1-D tensor whose elements are the scalars.
Value createVector(OpBuilder &builder, Location loc, ArrayRef<Value> scalars);

/// Returns true if ranks of the mesh axis `axis` have different parts of the gradient of `unit`. On
/// the axis `tensor`, these are the units of which a rank has slices.
bool isGradientSplit(UnitOp unit, StringRef axis);

} // namespace mlir::fsdp

#endif // FSDP_LIB_UPDATE_SQUARESUMS_H
