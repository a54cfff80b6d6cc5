//===- Structured.h - Shapes of structured ops ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_STRUCTURED_H
#define FSDP_LIB_IMPORT_STRUCTURED_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

/// One input, one output, and the body only yields the input: a transpose, a
/// broadcast, or both. The output map is a permutation.
bool isCopy(linalg::GenericOp op);

/// All loops parallel.
bool isParallel(linalg::LinalgOp op);

/// `out + a·b` over float operands with at least one loop of each of m, n and k:
/// a matrix product. (A sum like Σ_n g[n,c]·x[n,c] is not one.)
bool isContraction(linalg::LinalgOp op);

/// Whether every loop's extent can be read off some operand.
bool boundsAllLoops(ArrayRef<AffineMap> maps, MLIRContext *context);

/// The scalar that a tensor holds everywhere: of a fill, a splat or rank-0
/// constant. Null when it is not known to be uniform or not constant.
TypedAttr uniformConstant(Value tensor);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_STRUCTURED_H
