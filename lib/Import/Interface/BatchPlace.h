//===- BatchPlace.h - Where the samples lie in a tensor ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_BATCHPLACE_H
#define FSDP_LIB_IMPORT_BATCHPLACE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::fsdp {

/// The place of the batch in a tensor. The extent of the dimension `dim` is the product outer ·
/// batch · inner. In this dimension, element i of sample s in outer block o has the index (o ·
/// batch + s) · inner + i.
struct BatchPlace {
  enum Kind {
    None,   ///< no element belongs to a sample, as in a parameter or a sum over the batch
    Inside, ///< the index of dimension `dim` determines the sample
    Unknown ///< the place is unknown
  };
  Kind kind = None;
  int64_t dim = 0;
  int64_t outer = 1;

  static BatchPlace unknown() { return {Unknown}; }
  static BatchPlace inside(int64_t dim, int64_t outer = 1) { return {Inside, dim, outer}; }
  bool operator==(const BatchPlace &other) const {
    return kind == other.kind && dim == other.dim && outer == other.outer;
  }
  /// Returns whether the elements of each sample are contiguous in memory, and each sample begins
  /// where the previous sample ends.
  bool isLeading() const { return kind == Inside && dim == 0 && outer == 1; }
};

/// Computes the place of the batch in each tensor of a function of one block. The time is O(ops).
class BatchPlaces {
public:
  /// `inputs` are the batch inputs of the function, whose dimension 0 has size `batch`.
  BatchPlaces(func::FuncOp func, ArrayRef<BlockArgument> inputs, int64_t batch);

  BatchPlace get(Value value) const { return places.lookup(value); }

private:
  BatchPlace compute(OpResult result) const;
  BatchPlace ofStructured(linalg::LinalgOp op, OpResult result) const;
  BatchPlace loopOf(linalg::LinalgOp op, OpOperand &operand) const;
  BatchPlace loopOf(linalg::LinalgOp op, tensor::ExtractOp lookup) const;
  BatchPlace ofCollapse(tensor::CollapseShapeOp op) const;
  BatchPlace ofExpand(tensor::ExpandShapeOp op) const;
  BatchPlace ofSlice(tensor::ExtractSliceOp op) const;
  BatchPlace joinOperands(Operation *op) const;

  int64_t batch;
  llvm::DenseMap<Value, BatchPlace> places;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_BATCHPLACE_H
