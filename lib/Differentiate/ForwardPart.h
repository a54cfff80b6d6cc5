//===- ForwardPart.h - Forward and backward of a function -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_DIFFERENTIATE_FORWARDPART_H
#define FSDP_LIB_DIFFERENTIATE_FORWARDPART_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {

/// The forward of a differentiated function: all ops on which a result that is no gradient depends.
/// All other ops are the backward. The constructor derives the forward from the IR, not from
/// attributes on ops, because attributes could be lost between passes.
class ForwardPart {
public:
  explicit ForwardPart(func::FuncOp func);

  bool contains(Operation *op) const { return ops.contains(op); }
  /// Returns true if the forward computes `v`.
  bool computes(Value v) const { return v.getDefiningOp() && contains(v.getDefiningOp()); }

  /// Returns the forward values that the backward reads. Each value is returned together with its
  /// first reader in the backward. The values are in the program order of these readers. Omits
  /// empty tensors, fills and constants.
  llvm::MapVector<Value, Operation *> getSaved() const;
  int64_t countSavedBytes() const;

private:
  func::FuncOp func;
  DenseSet<Operation *> ops;
};

/// Returns true if result `index` of the function is a gradient.
bool isGradient(func::FuncOp func, unsigned index);
/// Returns true if the function returns gradients.
bool hasGradients(func::FuncOp func);
/// Returns the operands of `op` and the values that its regions capture.
llvm::SetVector<Value> getAllOperands(Operation *op);
/// Returns true if the tensor is empty, a constant, or filled with a constant.
bool isFree(Value v);
int64_t countBytes(Type type);

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIFFERENTIATE_FORWARDPART_H
