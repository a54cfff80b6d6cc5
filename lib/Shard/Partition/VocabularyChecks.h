//===- VocabularyChecks.h - Checks of a split vocabulary --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PARTITION_VOCABULARYCHECKS_H
#define FSDP_LIB_SHARD_PARTITION_VOCABULARYCHECKS_H

#include "SplitRules.h"

namespace mlir::fsdp {

/// Checks that `lookup`, which reads a table of which a rank has `rows` rows, maps the ids to these
/// rows. Reports errors through `fail`, which emits the name of the op.
LogicalResult checkOwnIds(Operation *lookup, int64_t rows, function_ref<InFlightDiagnostic()> fail);

/// Checks that `op`, the reader of such a lookup, sets the rows of ids of other ranks to 0.
LogicalResult checkMask(Operation *op, int64_t rows, function_ref<InFlightDiagnostic()> fail);

/// Checks that a cross-entropy, whose logits are split along the classes, has the coordinate of the
/// rank, and adds over the axis `tensor`.
LogicalResult checkClasses(CrossEntropyOp op, function_ref<InFlightDiagnostic()> fail);

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PARTITION_VOCABULARYCHECKS_H
