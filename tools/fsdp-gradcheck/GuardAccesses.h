//===- GuardAccesses.h - Checks of indices and divisors ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_GRADCHECK_GUARDACCESSES_H
#define FSDP_GRADCHECK_GUARDACCESSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp::gradcheck {

/// A guard: a memory access or an integer division of which one operand is checked at run time.
struct Guard {
  Location loc;
  bool isDivision = false;
  int64_t bound = 0; ///< an index must be in [0, bound)
};

/// Adds guards to \p func, so that each access is inside of its buffer and no integer division is
/// undefined. Appends the added guards to \p guards. The last argument of \p func is a
/// memref<2xi64>. If a guard fails, the function stores two numbers there: 1 + the index of the
/// guard in \p guards, and the value of the checked operand. Fails with a diagnostic if a buffer is
/// empty, because an empty buffer has no element that could be accessed instead.
LogicalResult guardAccesses(func::FuncOp func, std::vector<Guard> &guards);

void report(const Guard &guard, int64_t value);

} // namespace mlir::fsdp::gradcheck

#endif // FSDP_GRADCHECK_GUARDACCESSES_H
