//===- ForwardPart.h - Which ops are forward, which backward ----*- C++ -*-===//
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

/// The forward of a differentiated function is what its results that are no
/// gradients depend on; everything else is backward. No marks to keep, none to lose.
class ForwardPart {
public:
  explicit ForwardPart(func::FuncOp func);

  bool contains(Operation *op) const { return ops.contains(op); }
  /// Is `v` computed by the forward?
  bool computes(Value v) const { return v.getDefiningOp() && contains(v.getDefiningOp()); }

  /// Forward values that backward ops read, in program order of the first reader,
  /// with that reader. Empty tensors, fills and constants are not counted.
  llvm::MapVector<Value, Operation *> getSaved() const;
  int64_t countSavedBytes() const;

private:
  func::FuncOp func;
  DenseSet<Operation *> ops;
};

/// Is result `index` of the function a gradient?
bool isGradient(func::FuncOp func, unsigned index);
/// Does the function return gradients?
bool hasGradients(func::FuncOp func);
/// Operands of `op` and values its regions capture.
llvm::SetVector<Value> getAllOperands(Operation *op);
/// Is the tensor made from nothing: empty, filled with a constant, constant?
bool isFree(Value v);
int64_t countBytes(Type type);

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIFFERENTIATE_FORWARDPART_H
