//===- HeadChecks.h - Checks of parts that ranks share ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PARTITION_HEADCHECKS_H
#define FSDP_LIB_SHARD_PARTITION_HEADCHECKS_H

#include "SplitRules.h"

namespace mlir::fsdp {

/// Returns true if `op` reads the coordinate of the rank on the axis `tensor`.
bool readsCoordinate(Operation *op);

/// Returns the split of the result of `op`, which must pick the part of its first operand that the
/// rank and its neighbours read. Reports errors through `fail`, which emits the name of the op.
FailureOr<TensorSplit> checkPick(Operation *op, int64_t ranks,
                                 function_ref<InFlightDiagnostic()> fail);

/// Sets the splits that the keys and values of attention must have, if the queries of a rank are
/// split along heads. `found` is the split of the keys, or null if they are whole.
void expectKeys(AttentionOp op, const TensorSplit *found, OpSplits &expected);

/// Checks that a slice of a value, whose cotangent the ranks compute in parts, is one of several
/// slices that cover the value. Otherwise, ranks would read some elements of it only.
LogicalResult checkCover(Operation *op, function_ref<InFlightDiagnostic()> fail);

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PARTITION_HEADCHECKS_H
