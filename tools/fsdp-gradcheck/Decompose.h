//===- Decompose.h - Raised ops as plain loops ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_GRADCHECK_DECOMPOSE_H
#define FSDP_GRADCHECK_DECOMPOSE_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp::gradcheck {

/// Writes softmax, gather_rows, scatter_add_rows, cross_entropy and its gradient in
/// the most obvious way, apart from how the compiler does it.
LogicalResult decomposeRaisedOps(ModuleOp module);

} // namespace mlir::fsdp::gradcheck

#endif // FSDP_GRADCHECK_DECOMPOSE_H
