//===- LinalgBuilders.h - Builders of small linalg ops ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_DIFFERENTIATE_LINALGBUILDERS_H
#define FSDP_LIB_DIFFERENTIATE_LINALGBUILDERS_H

#include "fsdp/IR/Decompositions.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace mlir::fsdp {

inline bool isFloat(Value v) { return isa<FloatType>(getElementTypeOrSelf(v)); }

/// Returns the working precision for gradients of values of the type `type`. The working precision
/// is f32 for types that are narrower than f32, and `type` itself for all other types.
Type getWorkingType(Type type);

/// Returns `type` with the element type `element`. For a scalar type, returns `element`.
Type withElementType(Type type, Type element);

/// Converts a scalar or a tensor to the element type `element`. The conversion of a tensor is one
/// elementwise op.
Value convertElements(OpBuilder &b, Location loc, Value v, Type element);

using ScalarBody = function_ref<Value(OpBuilder &, Location, ValueRange)>;

/// Builds a linalg.generic with parallel loops and identity maps, which computes a tensor with the
/// element type `element` from `ins`.
Value buildElementwise(OpBuilder &b, Location loc, ValueRange ins, Type element, ScalarBody body);

/// Builds an op that computes init + Σ body(ins). The sum is over the loops that do not occur in
/// `outMap`.
Value buildSum(OpBuilder &b, Location loc, ValueRange ins, ArrayRef<AffineMap> inMaps, Value init,
               AffineMap outMap, ScalarBody body);

/// Builds a tensor of zeros, or a scalar zero.
Value buildZeros(OpBuilder &b, Location loc, Type type);

/// Returns the iterator type of each loop. A loop is parallel if one of the results of `outMap` is
/// just this loop, and else a reduction. A result d0 + d1 does not make a loop parallel, because
/// several iterations write the same element.
SmallVector<utils::IteratorType> inferIterators(AffineMap outMap);

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIFFERENTIATE_LINALGBUILDERS_H
