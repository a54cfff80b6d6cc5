//===- CaptureOperands.h - Make captured values operands --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_CAPTUREOPERANDS_H
#define FSDP_LIB_IMPORT_CAPTUREOPERANDS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::fsdp {

/// Adds patterns that turn values that the body of a generic captures into operands of the generic.
/// These values are scalars, and tensors from which the body extracts elements at indices that
/// depend on the loops alone.
void populateCaptureOperandPatterns(RewritePatternSet &patterns);

/// Returns `index`, a value in a body, as an affine function of the loops. Returns null if it is
/// none.
AffineExpr affineIndex(Value index);

/// Rebuilds `op` with one more input, whose block argument replaces `captured` in the body.
void addInput(linalg::GenericOp op, Value input, AffineMap map, Value captured,
              RewriterBase &rewriter);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_CAPTUREOPERANDS_H
