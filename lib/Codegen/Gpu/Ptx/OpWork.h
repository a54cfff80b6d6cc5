//===- OpWork.h - Work of scalar operations on a GPU ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_PTX_OPWORK_H
#define FSDP_LIB_CODEGEN_GPU_PTX_OPWORK_H

#include "mlir/Dialect/Math/IR/Math.h"

namespace mlir::fsdp {

/// Instructions of a lane, and how many of them are special functions.
struct OpWork {
  double issue = 0, special = 0;
  OpWork &operator+=(const OpWork &other) {
    issue += other.issue;
    special += other.special;
    return *this;
  }
};

/// Returns true if x / y is 1 / (2^z + 1) in f32. Its divisor is never small or denormal.
bool isLogistic(Value x, Value y);

/// Returns the work of an operation of arith, math or tensor on scalars, as the expansions of
/// GpuMath.cpp compute it.
OpWork workOf(Operation &op);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_PTX_OPWORK_H
