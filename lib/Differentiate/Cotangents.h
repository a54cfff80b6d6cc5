//===- Cotangents.h - Activity and cotangents of values ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_DIFFERENTIATE_COTANGENTS_H
#define FSDP_LIB_DIFFERENTIATE_COTANGENTS_H

#include "LinalgBuilders.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fsdp {

/// Cotangents of the values of one block. A missing cotangent is zero. The cotangents of slices of
/// a value stay separate until the cotangent of the value itself is read. At that time, they are
/// joined.
class Cotangents {
public:
  explicit Cotangents(OpBuilder &b) : b(b) {}

  /// Marks a parameter as active, and selects working precision for its cotangent.
  void activateParameter(Value v);
  /// Marks each float value of `block` that depends on an active value as active.
  void propagateActivity(Block &block);
  bool isActive(Value v) const { return active.contains(v); }

  /// Returns the element type of the cotangent of `v`. For parameters and their views, this type is
  /// the working precision, because their cotangents are sums of many small terms. For all other
  /// values, this type is the element type of `v`.
  Type getElementType(Value v) const;
  Type getType(Value v) const { return withElementType(v.getType(), getElementType(v)); }

  Value get(Value v);  ///< returns the sum of the cotangents that were added; null stands for zero
  Value take(Value v); ///< returns get(v) and resets the cotangent to zero
  void add(Value v, Value g);
  void addSlice(Value v, Value g, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes,
                ArrayRef<int64_t> strides);

  OpBuilder &b;
  /// Whether adjoints read results of the forward instead of recomputing them.
  bool useResults = true;
  int64_t numFree = 0; ///< number of cotangents that needed no op, because they are existing values

private:
  struct Slice {
    Value g;
    SmallVector<int64_t> offsets, sizes, strides;
  };
  static bool areDisjoint(const Slice &l, const Slice &r);
  Value joinLayer(RankedTensorType type, ArrayRef<Slice> layer);
  void joinSlices(Value v);

  DenseSet<Value> active, wide;
  DenseMap<Value, Value> cotangents;
  DenseMap<Value, SmallVector<Slice>> slices;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIFFERENTIATE_COTANGENTS_H
