//===- Narrower.h - Computes a function in a narrower type ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_NARROWER_H
#define FSDP_LIB_SHARD_NARROWER_H

#include "PrecisionPlan.h"

namespace mlir::fsdp {

/// Rewrites a function so that the values that a plan makes narrow have the narrow type.
class Narrower {
public:
  Narrower(func::FuncOp func, const PrecisionPlan &plan, FloatType narrow)
      : func(func), plan(plan), narrow(narrow), b(func.getContext()) {}

  void run();

  int64_t numValues = 0, numCasts = 0, numParams = 0;

private:
  void narrowArguments();
  void rewrite(Operation *op);
  void rewriteProduct(Operation *op);
  void rewriteGeneric(linalg::GenericOp op);
  void rewriteAttention(AttentionOp op);
  void narrowCapture(AttentionOp op, unsigned index);
  void rewriteSoftmax(linalg::SoftmaxOp op);
  void rewriteLike(Operation *op, OpOperand &source);
  void rewritePad(tensor::PadOp op);
  void widenArguments(linalg::LinalgOp op, bool clampsTables);
  void clampConstants(linalg::GenericOp op);
  Value clamp(Value v);
  void narrowYield(linalg::GenericOp op, unsigned index);
  void roundResult(OpResult result);
  void setNarrow(Value v);
  Value convert(Value v, Type element);
  void convertOperand(OpOperand &operand, bool toNarrow);
  bool isTable(Value v);

  func::FuncOp func;
  const PrecisionPlan &plan;
  FloatType narrow;
  OpBuilder b;
  DenseMap<std::pair<Value, Type>, Value> converted;
  DenseSet<Value> narrowed; ///< values whose type this pass has changed from f32
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_NARROWER_H
