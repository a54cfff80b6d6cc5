//===- Elementwise.h - Elementwise ops with scalar operands -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_UPDATE_ELEMENTWISE_H
#define FSDP_LIB_UPDATE_ELEMENTWISE_H

#include "fsdp/IR/StepBlock.h"
#include "mlir/IR/Builders.h"

namespace mlir {
namespace fsdp {

/// Builds the results for one element. The arguments are the elements of the inputs, followed by
/// the elements of the outputs.
using ElementFn = function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, ValueRange)>;

/// Builds a linalg.generic over `outs`, which have equal shapes. An input has the same shape as
/// `outs`, or has rank 0 if it is a scalar that all elements read.
SmallVector<Value> createElementwise(OpBuilder &builder, Location loc, ValueRange ins,
                                     ValueRange outs, ElementFn body);

/// Returns element `index` of a 1-D tensor as a rank-0 view.
Value createElementView(OpBuilder &builder, Location loc, Value tensor, OpFoldResult index);
inline Value createElementView(OpBuilder &builder, Location loc, Value tensor, int64_t index) {
  return createElementView(builder, loc, tensor, OpFoldResult(builder.getIndexAttr(index)));
}
inline Value createElementView(OpBuilder &builder, Location loc, Value block, StepSlot slot) {
  return createElementView(builder, loc, block, static_cast<int64_t>(slot));
}

/// Builds an empty tensor of this type.
Value createEmpty(OpBuilder &builder, Location loc, Type type);
/// Return the type of one element of the first dimension of a tensor, and build a view of it.
Type getPartType(Type type);
Value createPart(OpBuilder &builder, Location loc, Value tensor, int64_t index);
/// Builds a tensor of +0.
Value createZeros(OpBuilder &builder, Location loc, Type type);

/// Converts a floating-point value to `type`: extends it, rounds it, or returns it unchanged.
Value castFloat(ImplicitLocOpBuilder &builder, Value value, Type type);
Value createConstant(ImplicitLocOpBuilder &builder, Type type, double value);

/// Returns the type in which values of `type` are summed or updated: f64 for f64, and f32
/// otherwise.
FloatType getComputeType(Type type);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_LIB_UPDATE_ELEMENTWISE_H
