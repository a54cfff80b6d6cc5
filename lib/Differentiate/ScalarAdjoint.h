//===- ScalarAdjoint.h - Reverse sweep over scalar code ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_DIFFERENTIATE_SCALARADJOINT_H
#define FSDP_LIB_DIFFERENTIATE_SCALARADJOINT_H

#include "LinalgBuilders.h"

namespace mlir::fsdp {

/// Differentiates straight-line scalar code in reverse mode. Call activate() for each input, seed()
/// for each output, run() for the ops, then gradient() for each input. The type of the gradient of
/// a value is the working precision of the value's type.
class ScalarAdjoint {
public:
  ScalarAdjoint(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  void activate(Value v) { active.insert(v); }
  bool isActive(Value v) const { return active.contains(v); }
  void seed(Value v, Value g);
  LogicalResult run(ArrayRef<Operation *> ops);
  /// Returns the gradient of `v`, or null if it is zero.
  Value gradient(Value v) const { return gradients.lookup(v); }

private:
  LogicalResult refuseBits(ArrayRef<Operation *> ops) const;
  LogicalResult reverse(Operation *op, Value g);

  OpBuilder &b;
  Location loc;
  DenseSet<Value> active;
  DenseMap<Value, Value> gradients;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIFFERENTIATE_SCALARADJOINT_H
