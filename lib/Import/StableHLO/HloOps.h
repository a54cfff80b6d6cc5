//===- HloOps.h - Access to ops of StableHLO, and their lowerings -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IMPORT_STABLEHLO_HLOOPS_H
#define FSDP_IMPORT_STABLEHLO_HLOOPS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fsdp {

/// The values that replace the results of an op, or failure if an error was emitted.
using HloResult = FailureOr<SmallVector<Value>>;

/// Returns the type of an operand or a result. LowerStablehlo.cpp has checked that this type is a
/// tensor of static shape.
RankedTensorType tensorOf(Value value);

/// Returns the integers of an attribute (`array<i64>`, `dense<..>`, a list, or one integer).
/// Returns `missing` if the op has no such attribute. If `holder` is not null, reads the entry
/// `name` of this dictionary instead of an attribute of the op.
SmallVector<int64_t> getInts(Operation *op, StringRef name, ArrayRef<int64_t> missing = {},
                             DictionaryAttr holder = nullptr);

/// Returns the text of an attribute, or an empty text if the op has no such attribute.
StringRef getWord(Operation *op, StringRef name);

/// Emits an error unless `dims` are pairwise different numbers in [0, rank).
LogicalResult checkDims(Operation *op, StringRef name, ArrayRef<int64_t> dims, int64_t rank);

/// Emits an error unless `found` has `expected` elements.
LogicalResult checkCount(Operation *op, StringRef name, size_t found, size_t expected);

/// Emits an error unless the first result has the given shape.
LogicalResult checkShape(Operation *op, ArrayRef<int64_t> expected);

/// Returns the scalar that a tensor of rank 0 holds.
Value getScalar(OpBuilder &b, Location loc, Value value);

/// Returns a tensor of `type` with all elements equal to a scalar.
Value buildFilled(OpBuilder &b, Location loc, RankedTensorType type, Value scalar);

/// Converts integers to constant offsets, sizes or strides of a slice.
SmallVector<OpFoldResult> sliceIndices(OpBuilder &b, ArrayRef<int64_t> values);

/// Builds a tensor of `type`. The function `element` builds the element whose indices are the loop
/// indices (linalg.index).
Value buildByIndex(OpBuilder &b, Location loc, RankedTensorType type,
                   function_ref<Value(OpBuilder &, Location)> element);

/// Builds the ops to which an elementwise op is lowered. `result` is the type of the result.
/// `operands` are tensors if `result` is a tensor type, and scalars otherwise. Returns a null value
/// if the op is not elementwise.
FailureOr<Value> lowerElementwise(OpBuilder &b, Operation *op, ValueRange operands, Type result);

/// Lowers the body of a reduction. The scalars `arguments` replace the arguments of the body. The
/// body consists of elementwise ops on tensors of rank 0. Returns the results of the body.
HloResult lowerBody(OpBuilder &b, Operation *op, ValueRange arguments);

// Lowerings by op. Each function assumes that shapes are static, and verifies everything else.
HloResult lowerBroadcast(OpBuilder &b, Operation *op);
HloResult lowerReshape(OpBuilder &b, Operation *op);
HloResult lowerTranspose(OpBuilder &b, Operation *op);
HloResult lowerReverse(OpBuilder &b, Operation *op);
HloResult lowerIota(OpBuilder &b, Operation *op);
HloResult lowerSlice(OpBuilder &b, Operation *op);
HloResult lowerConcatenate(OpBuilder &b, Operation *op);
HloResult lowerPad(OpBuilder &b, Operation *op);
HloResult lowerDynamicSlice(OpBuilder &b, Operation *op);
HloResult lowerDynamicUpdateSlice(OpBuilder &b, Operation *op);
HloResult lowerGather(OpBuilder &b, Operation *op);
HloResult lowerScatter(OpBuilder &b, Operation *op);
HloResult lowerDotGeneral(OpBuilder &b, Operation *op);
HloResult lowerConvolution(OpBuilder &b, Operation *op);
HloResult lowerReduce(OpBuilder &b, Operation *op);
HloResult lowerReduceWindow(OpBuilder &b, Operation *op);

} // namespace mlir::fsdp

#endif // FSDP_IMPORT_STABLEHLO_HLOOPS_H
