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

/// Adds patterns that turn captured values of a generic's body into operands: scalars, and tensors
/// whose elements the body extracts at indices that depend on the loops alone.
void populateCaptureOperandPatterns(RewritePatternSet &patterns);

/// Returns an index in a body as an affine function of the loops, or null if it depends on data.
AffineExpr affineIndex(Value index);

/// Rebuilds `op` with one more input, whose block argument replaces `captured` in the body.
void addInput(linalg::GenericOp op, Value input, AffineMap map, Value captured,
              RewriterBase &rewriter);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_CAPTUREOPERANDS_H
