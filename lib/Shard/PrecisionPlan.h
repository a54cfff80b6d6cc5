//===- PrecisionPlan.h - Choice of values to narrow -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PRECISIONPLAN_H
#define FSDP_LIB_SHARD_PRECISIONPLAN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

/// Returns whether `v` is a tensor of f32.
bool isFloat32Tensor(Value v);

/// Returns whether `op` is a product of two tensors with a result of rank ≥ 1: a contraction or a
/// convolution. Such an op can read 16-bit operands and accumulate in f32.
bool isProduct(Operation *op);

/// Returns whether the elements of the result are elements of operand 0: reshapes, slices, casts
/// and fsdp.stop_gradient.
bool isViewOfOperand(Operation *op);

/// Returns the nearest number in the finite range of `type`; NaN and infinity unchanged.
llvm::APFloat clampToRange(const llvm::APFloat &value, FloatType type);

/// Decides which f32 tensors of a model become narrow:
///
///   parameter, activation    narrow: results of products, maps and lookups of such values
///   statistic                f32: sums and extremes, and maps of statistics alone
///   table                    f32: computed from constants and integers alone
///   output                   f32 if `wideOutputs`: the loss is computed from it
///
/// A float batch argument keeps its type; values computed from it are activations.
class PrecisionPlan {
public:
  /// Reads the function while all its values are f32.
  PrecisionPlan(func::FuncOp func, FloatType narrow, bool wideOutputs);

  bool isNarrow(Value v) const { return narrowValues.contains(v); }
  /// Returns whether `v` is a parameter, a batch input or an activation. Products of these are
  /// narrow.
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
