//===- Structured.h - Classification of structured ops ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_STRUCTURED_H
#define FSDP_LIB_IMPORT_STRUCTURED_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

/// Returns whether `op` has one input and one result, and its body only yields the element of the
/// input. Such an op is a transpose, a broadcast, or both. Its output map must be a permutation.
bool isCopy(linalg::GenericOp op);

/// Returns whether all loops of `op` are parallel.
bool isParallel(linalg::LinalgOp op);

/// Returns whether `op` is a matrix product: it computes `out + a·b` on floats, and has at least
/// one loop of each kind (m, n and k). (A sum such as Σ_n g[n,c]·x[n,c] is not a matrix product.)
bool isContraction(linalg::LinalgOp op);

/// Returns whether the maps of the operands determine the extent of every loop.
bool boundsAllLoops(ArrayRef<AffineMap> maps, MLIRContext *context);

/// If `tensor` is a splat constant, a rank-0 constant, or the result of a linalg.fill with a
/// constant, returns the value that all its elements have. Returns null otherwise.
TypedAttr uniformConstant(Value tensor);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_STRUCTURED_H
