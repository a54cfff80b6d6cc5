//===- PrecisionPlan.h - Which values become narrow -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PRECISIONPLAN_H
#define FSDP_LIB_SHARD_PRECISIONPLAN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

/// `v` is a tensor of f32.
bool isFloat32Tensor(Value v);

/// A product of two tensors: what runs on 16-bit operands and accumulates in
/// f32. A product of scalars alone is none.
bool isProduct(Operation *op);

/// Reshapes, slices and gradients that stop: the result has the elements of operand 0.
bool isViewOfOperand(Operation *op);

/// The nearest finite number of `type`.
llvm::APFloat clampToRange(const llvm::APFloat &value, FloatType type);

/// Which f32 tensors of a model hold elements of a narrower type.
///
///   parameter, activation    narrow: products, maps and lookups of such
///   statistic                f32: sums, extremes, what is made of them alone
///   table                    f32: made of constants and integers alone
///   output                   f32 if asked: what the loss is computed from
///
/// A batch argument of floats stays as it is; what is made of it is an activation.
class PrecisionPlan {
public:
  /// Reads the function while all its values are f32.
  PrecisionPlan(func::FuncOp func, FloatType narrow, bool wideOutputs);

  bool isNarrow(Value v) const { return narrowValues.contains(v); }
  /// Parameters, batch inputs and activations: whose products are narrow.
  bool flows(Value v) const { return flowing.contains(v); }
  unsigned getNumOutputs() const { return numOutputs; }

private:
  void collectFlow(Operation *op);
  void visitLoss(Value v);
  void keepWide(Value v);
  void decide(Operation *op);
  bool holdsForeignNumber(linalg::GenericOp op, Value yielded) const;

  FloatType narrow;
  DenseSet<Value> flowing, wide, visited, narrowValues;
  unsigned numOutputs = 0;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PRECISIONPLAN_H
