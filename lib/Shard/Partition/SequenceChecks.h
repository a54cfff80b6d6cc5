//===- SequenceChecks.h - Checks of ops on parts of a sequence --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PARTITION_SEQUENCECHECKS_H
#define FSDP_LIB_SHARD_PARTITION_SEQUENCECHECKS_H

#include "SplitRules.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Returns true if `value` is an argument that contains the coordinate of the rank on `axis`.
bool isCoordinate(Value value, StringRef axis);

/// Checks that the functions of attention read the index of dimension `dim`, which is split over
/// `axis`, only in the whole dimension. Reports errors through `fail`, which emits the name of the
/// op.
LogicalResult checkIndices(AttentionOp op, int64_t dim, const SplitAxis &axis,
                           function_ref<InFlightDiagnostic()> fail);

/// Returns true if `op` reshapes its operand, or copies it in another order of dimensions.
bool isCopy(Operation *op);

/// Returns the number of rows of a rank if the first function of attention that reads the index of
/// a row expects stripes, else 0.
int64_t countStripes(func::FuncOp func);

/// Return true if the piece of a rank, or of each rank, consists of stripes.
bool isStriped(OwnPieceOp op, int64_t ranks);
bool isStriped(AllGatherOp op, int64_t ranks);

/// Checks that the keys and values of attention with `ring` are the blocks of the rank. `isSplit`
/// returns true if a value has a split.
LogicalResult checkRing(AttentionOp op, const SplitAxis &axis,
                        function_ref<bool(Value, const TensorSplit &)> isSplit,
                        function_ref<InFlightDiagnostic()> fail);

/// Returns the split over `context` of rows that `op` scatters or gathers over the axis `tensor`,
/// and whose operand has the split `split`. Returns nothing if `op` is another op. If a rank has a
/// part of a block, its rows are one block until they are gathered: `cuts` has the number of
/// blocks.
std::optional<TensorSplit> cutRows(Operation *op, const TensorSplit &split,
                                   DenseMap<Value, size_t> &cuts);

/// Checks that `op` multiplies the loss of a cross-entropy on one of `ranks` ranks by the part that
/// its rows are of the rows of all ranks.
LogicalResult checkWeight(Operation *op, int64_t ranks, function_ref<InFlightDiagnostic()> fail);

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PARTITION_SEQUENCECHECKS_H
