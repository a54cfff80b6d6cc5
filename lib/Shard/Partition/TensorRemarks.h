//===- TensorRemarks.h - Reports of what axis tensor splits -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PARTITION_TENSORREMARKS_H
#define FSDP_LIB_SHARD_PARTITION_TENSORREMARKS_H

#include "TensorSeeds.h"

namespace mlir::fsdp {

/// Emits a remark for each parameter, with the dimension that is split, or the reason why the
/// parameter is whole.
void remarkSplits(func::FuncOp func, const SplitGroup &group, ArrayRef<WholeGroup> whole,
                  int64_t ranks);

/// Emits a warning if there is attention that each rank computes as a whole.
void warnOfWholeAttention(ArrayRef<WholeGroup> whole, int64_t ranks);

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PARTITION_TENSORREMARKS_H
