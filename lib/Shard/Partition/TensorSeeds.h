//===- TensorSeeds.h - Which values the axis tensor splits ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PARTITION_TENSORSEEDS_H
#define FSDP_LIB_SHARD_PARTITION_TENSORSEEDS_H

#include "SplitGroup.h"
#include "TensorPlan.h"

namespace mlir::fsdp {

/// A group of values that could be split but is not, and the reason.
struct WholeGroup {
  Operation *op; ///< attention, or a product with a parameter or a lookup in one, around which the
                 ///< group would be
  std::string why;
};

/// Returns the parameter that an operand reads through views, transpositions and conversions, or
/// null.
BlockArgument findParameter(func::FuncOp func, Value value);

/// Splits the groups of values that `plan` selects, or all that are useful if `plan` is null. Adds
/// the others to `whole`. Emits an error if the plan cannot be followed, or if the ranks of the
/// axis do not divide the heads of attention.
FailureOr<SplitGroup> chooseSplits(func::FuncOp func, int64_t ranks, const TensorPlan *plan,
                                   SmallVectorImpl<WholeGroup> &whole);

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PARTITION_TENSORSEEDS_H
