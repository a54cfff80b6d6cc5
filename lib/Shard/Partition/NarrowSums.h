//===- NarrowSums.h - Sums over ranks in the type of operands ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PARTITION_NARROWSUMS_H
#define FSDP_LIB_SHARD_PARTITION_NARROWSUMS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

/// Returns the type in which ranks send the partial sum `partial`, a result of `op`, if `op` is a
/// product of narrow operands and all readers round to their type. Returns null otherwise.
FloatType getTermType(Operation *op, Value partial);

/// Rounds a partial sum to `type`.
Value roundTerm(OpBuilder &b, Value partial, FloatType type);

/// Lets `map` read `sum`, which is narrower, instead of `partial`.
void readNarrowSum(linalg::GenericOp map, Value partial, Value sum);

/// Returns true if the result of `map` is equal to its input.
bool isIdentity(linalg::GenericOp map);

/// Returns true if `op` is a map that rounds each element of one tensor to a narrower type.
bool isRounding(Operation *op);

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PARTITION_NARROWSUMS_H
