//===- TensorSum.h - Sums of the elements of one tensor ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_TENSORSUM_H
#define FSDP_IR_TENSORSUM_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

/// The sum of a tensor over some of its dimensions, in f32.
struct TensorSum {
  linalg::GenericOp op;
  Value source;              ///< the tensor, before its elements are extended to f32
  Value init;                ///< the value to which the elements are added
  SmallVector<int64_t> kept; ///< dimension of `source` for each dimension of the result
};

/// Returns the sum that computes `result`, or nothing if it is computed otherwise.
std::optional<TensorSum> matchTensorSum(Value result);

/// Returns the number of the factor (0 or 1) whose elements `sum` adds, if it adds them over all
/// values of k of the contraction, and no dimension of the factor is a batch dimension. Otherwise
/// returns nothing.
std::optional<unsigned> findSummedFactor(linalg::ContractOp contract, const TensorSum &sum);

} // namespace mlir::fsdp

#endif // FSDP_IR_TENSORSUM_H
