//===- Decompose.h - Raised ops as plain loops ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_GRADCHECK_DECOMPOSE_H
#define FSDP_GRADCHECK_DECOMPOSE_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp::gradcheck {

/// Rewrites softmax and fsdp ops, such as attention and cross-entropy, as loops. The compiler's
/// decompositions are called only for fsdp.random, and for attention with a gradient op.
LogicalResult decomposeRaisedOps(ModuleOp module);

} // namespace mlir::fsdp::gradcheck

#endif // FSDP_GRADCHECK_DECOMPOSE_H
