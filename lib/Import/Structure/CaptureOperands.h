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

/// If the body of a generic captures a value, the patterns turn this value into an operand of the
/// generic. Such a value is a scalar, or a tensor from which the body extracts elements at indices
/// that depend on the loops alone.
void populateCaptureOperandPatterns(RewritePatternSet &patterns);

/// Returns `index`, a value in a body, as an affine function of the loops. Returns null if `index`
/// is not affine.
AffineExpr affineIndex(Value index);

/// Rebuilds `op` with one more input, whose block argument replaces `captured` in the body.
void addInput(linalg::GenericOp op, Value input, AffineMap map, Value captured,
              RewriterBase &rewriter);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_CAPTUREOPERANDS_H
