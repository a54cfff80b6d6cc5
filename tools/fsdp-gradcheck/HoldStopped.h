//===- HoldStopped.h - Constants for stopped gradients ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_GRADCHECK_HOLDSTOPPED_H
#define FSDP_GRADCHECK_HOLDSTOPPED_H

#include "Subject.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp::gradcheck {

/// Returns the name of the function that computes the stopped values of `function`.
std::string getHeldName(StringRef function);

/// Converts the result of each fsdp.stop_gradient in `func` to an argument. Adds a function that
/// computes the values of these arguments. Sets `function.held`. Does nothing if `func` contains no
/// fsdp.stop_gradient.
LogicalResult holdStopped(func::FuncOp func, Function &function);

} // namespace mlir::fsdp::gradcheck

#endif // FSDP_GRADCHECK_HOLDSTOPPED_H
