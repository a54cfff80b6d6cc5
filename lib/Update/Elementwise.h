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

/// Builds the values of one element; the arguments are those of the inputs,
/// then those of the outputs.
using ElementFn = function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, ValueRange)>;

/// A linalg.generic over `outs`, which are of one shape. Inputs have this shape
/// or rank 0: a scalar, the same for all elements.
SmallVector<Value> createElementwise(OpBuilder &builder, Location loc, ValueRange ins,
                                     ValueRange outs, ElementFn body);

/// Element `index` of a 1-D tensor as a rank-0 tensor: a view.
Value createElementView(OpBuilder &builder, Location loc, Value tensor, OpFoldResult index);
inline Value createElementView(OpBuilder &builder, Location loc, Value tensor, int64_t index) {
  return createElementView(builder, loc, tensor, OpFoldResult(builder.getIndexAttr(index)));
}
inline Value createElementView(OpBuilder &builder, Location loc, Value block, StepSlot slot) {
  return createElementView(builder, loc, block, static_cast<int64_t>(slot));
}

/// An empty tensor of this type.
Value createEmpty(OpBuilder &builder, Location loc, Type type);
/// A tensor of +0.
Value createZeros(OpBuilder &builder, Location loc, Type type);

/// A floating-point value as `type`, extended, rounded or as it is.
Value castFloat(ImplicitLocOpBuilder &builder, Value value, Type type);
Value createConstant(ImplicitLocOpBuilder &builder, Type type, double value);

/// The type that numbers of `type` are summed and updated in: at least f32.
FloatType getComputeType(Type type);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_LIB_UPDATE_ELEMENTWISE_H
