//===- RowSeeds.h - Which rows the axis tensor splits -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PARTITION_ROWSEEDS_H
#define FSDP_LIB_SHARD_PARTITION_ROWSEEDS_H

#include "SplitGroup.h"

namespace mlir::fsdp {

/// A use of rows by an op that is not computed on rows, and is no fsdp.reduce_cotangent.
struct WholeUse {
  OpOperand *use;
  bool isSplit; ///< whether the op is split in another way
};

/// The values of the program of one rank of the axis `tensor` that are computed on rows.
struct RowRegion {
  SplitGroup group;
  SmallVector<WholeUse> wholeUses;
};

/// Returns true if `op` is an op of the type Op over the axis `tensor` alone.
template <typename Op>
bool isOverTensor(Operation *op) {
  auto found = dyn_cast_or_null<Op>(op);
  return found && found.getAxes().size() == 1 &&
         cast<StringAttr>(found.getAxes()[0]).getValue() == tensorAxis;
}

/// Chooses the ops that each of `ranks` ranks computes on its rows. Emits an error if there is no
/// such op and, with `remarks`, a remark for each op that stays whole.
FailureOr<RowRegion> chooseRows(func::FuncOp func, int64_t ranks, bool remarks);

/// Rewrites the program of one rank so that it has rows of the values of `region`.
void splitRows(func::FuncOp func, const RowRegion &region);

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PARTITION_ROWSEEDS_H
