//===- LinalgBuilders.h - Small linalg ops the adjoints need ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_DIFFERENTIATE_LINALGBUILDERS_H
#define FSDP_LIB_DIFFERENTIATE_LINALGBUILDERS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace mlir::fsdp {

inline bool isFloat(Value v) { return isa<FloatType>(getElementTypeOrSelf(v)); }

/// The type in which gradients of `type` are computed: f32 for anything narrower.
Type getWorkingType(Type type);

/// `type` with the element type `element`; a scalar becomes `element`.
Type withElementType(Type type, Type element);

/// extf, truncf or nothing, to reach the scalar type `to`.
Value convertFloat(OpBuilder &b, Location loc, Value v, Type to);

/// The same for a scalar or, by one elementwise op, for a tensor.
Value convertElements(OpBuilder &b, Location loc, Value v, Type element);

using ScalarBody = function_ref<Value(OpBuilder &, Location, ValueRange)>;

/// One generic, all loops parallel, identity maps: ins -> tensor<... x element>.
Value buildElementwise(OpBuilder &b, Location loc, ValueRange ins, Type element, ScalarBody body);

/// init + Σ body(ins) over the loops that `outMap` does not mention.
Value buildSum(OpBuilder &b, Location loc, ValueRange ins, ArrayRef<AffineMap> inMaps, Value init,
               AffineMap outMap, ScalarBody body);

/// A tensor of zeros, or a scalar zero.
Value buildZeros(OpBuilder &b, Location loc, Type type);

/// Parallel where a result of `outMap` is the bare dimension, reduction elsewhere
/// (d0 + d1 does not make d0 parallel: two iterations meet in one element).
SmallVector<utils::IteratorType> inferIterators(AffineMap outMap);

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIFFERENTIATE_LINALGBUILDERS_H
