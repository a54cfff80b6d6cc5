//===- RepeatRows.h - Gather rows again for the backward --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_DIFFERENTIATE_REPEATROWS_H
#define FSDP_LIB_DIFFERENTIATE_REPEATROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Returns true if `op` is a reshape, or copies its operand in another order.
bool movesElements(Operation *op);

/// Lets the backward of `func` gather rows again that the forward has gathered over the axis
/// `tensor`. Returns the number of gathers.
int64_t repeatRows(func::FuncOp func);

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIFFERENTIATE_REPEATROWS_H
