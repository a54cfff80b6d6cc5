//===- PrecisionPlan.h - Choice of values to narrow -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PRECISIONPLAN_H
#define FSDP_LIB_SHARD_PRECISIONPLAN_H

#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fsdp {

/// Returns whether `v` is a tensor of f32.
bool isFloat32Tensor(Value v);

/// Returns whether `op` is a product of two tensors with a result of rank ≥ 1: a contraction or a
/// convolution. Such an op can read 16-bit operands and accumulate in f32.
bool isProduct(Operation *op);

/// Returns whether the result of `op` consists of elements of operand 0. This is the case for
/// reshapes, slices, casts and fsdp.stop_gradient.
bool isViewOfOperand(Operation *op);

/// Returns the number in the finite range of `type` that is nearest to `value`. NaN and infinity do
/// not change.
llvm::APFloat clampToRange(const llvm::APFloat &value, FloatType type);

/// Returns whether `op` only moves elements of one tensor: a transposition or a broadcast.
bool isMove(linalg::GenericOp op);

/// The things that --keep-f32 names: some parameters and, if `attention` is set, all attention ops.
struct KeptWide {
  DenseSet<Value> parameters;
  bool attention = false;
};

/// Decides which f32 tensors of a model become narrow:
///
///   parameter, activation    narrow: results of products, maps and lookups of such values
///   statistic                f32: sums and extremes, and maps of statistics alone
///   table                    f32: computed from constants and integers alone
///   output                   f32 if `wideOutputs`: the loss is computed from it
///   kept                     f32: parameters, and operands of products and attention, that
///                            --keep-f32 names
///
/// A float batch argument keeps its type. Values that are computed from it are activations.
class PrecisionPlan {
public:
  /// Makes the plan. Must be called before any value of the function becomes narrow.
  PrecisionPlan(func::FuncOp func, FloatType narrow, bool wideOutputs, const KeptWide &keep = {});

  bool isNarrow(Value v) const { return narrowValues.contains(v); }
  /// Returns whether `v` is a parameter, a batch input or an activation. A product of such values
  /// has a narrow result.
  bool flows(Value v) const { return flowing.contains(v); }
  /// Returns whether the product or attention `op` is named by --keep-f32.
  bool isKept(Operation *op) const;
  unsigned getNumOutputs() const { return numOutputs; }
  struct WideValues {
    int64_t count = 0, elements = 0;
  };
  /// For each reason, counts the tensors of `func` that remain f32 for this reason. The reasons
  /// have the order of the first tensors to which they apply.
  llvm::MapVector<StringRef, WideValues> countWide(func::FuncOp func) const;

private:
  void collectFlow(Operation *op);
  void visitLoss(Value v);
  void keepWide(Value v);
  void decide(Operation *op);
  bool holdsForeignNumber(linalg::GenericOp op, Value yielded) const;
  StringRef getReason(Value v, DenseSet<Value> &measured) const;

  FloatType narrow;
  KeptWide keep;
  DenseSet<Value> flowing, wide, visited, narrowValues;
  DenseSet<Value> kept, foreign, summed; ///< values that remain f32, one set for each reason
  unsigned numOutputs = 0;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PRECISIONPLAN_H
