//===- Decompose.h - Raised ops as plain loops ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_GRADCHECK_DECOMPOSE_H
#define FSDP_GRADCHECK_DECOMPOSE_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp::gradcheck {

/// Rewrites softmax and the ops of the fsdp dialect, such as attention and cross-entropy, as loops.
/// The decompositions of the compiler are used only for fsdp.random, and for an attention op that
/// an attention gradient op uses.
LogicalResult decomposeRaisedOps(ModuleOp module);

} // namespace mlir::fsdp::gradcheck

#endif // FSDP_GRADCHECK_DECOMPOSE_H
