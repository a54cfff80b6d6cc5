//===- SequenceSeeds.h - Which values the axis context splits ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PARTITION_SEQUENCESEEDS_H
#define FSDP_LIB_SHARD_PARTITION_SEQUENCESEEDS_H

#include "SplitGroup.h"
#include "fsdp/Analysis/Cluster.h"

namespace mlir::fsdp {

/// Splits the rows of queries of each attention, and all values that must be split with them, over
/// the axis `context`. Emits an error if there is no attention, or if an op prevents the split.
FailureOr<SplitGroup> chooseSequence(func::FuncOp func, int64_t ranks);

/// Returns true if, with stripes of rows, the rank with most scores computes fewer of them than
/// with neighbouring rows.
bool prefersStripes(ArrayRef<AttentionOp> ops, int64_t ranks);

/// Estimates of one attention and one step of a ring: of its products, of sending the next block of
/// keys and values, and of merging the results.
struct RingStep {
  double attention = 0, transfer = 0, merge = 0;
  int64_t gathered = 0; ///< bytes of the keys and values of other ranks
  bool isHidden() const { return transfer + merge <= attention; }
};

/// Returns the estimates of the attention whose products hide least of the transfers.
RingStep estimateRing(ArrayRef<AttentionOp> ops, const SplitAxis &axis, int64_t stride,
                      const Cluster &cluster);

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PARTITION_SEQUENCESEEDS_H
