//===- SharedHeads.h - Heads of attention on several ranks ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PARTITION_SHAREDHEADS_H
#define FSDP_LIB_SHARD_PARTITION_SHAREDHEADS_H

#include "TensorSeeds.h"

namespace mlir::fsdp {

using Params = llvm::SmallSetVector<BlockArgument, 4>;

/// Adds the parameters that a product reads.
void addParams(func::FuncOp func, Operation *product, Params &params);

/// Returns the parameters of the last products before `values`, and of the ops after them.
Params findParamsBefore(func::FuncOp func, ValueRange values);

/// Returns true if `ranks` ranks can each have heads of queries and the heads of keys that these
/// read.
bool dividesHeads(int64_t queries, int64_t keys, int64_t ranks);

/// Returns the whole parameters of heads of keys and values that several ranks of the axis have,
/// and the reasons. With `all`, also returns other whole parameters of attention that is split.
llvm::MapVector<BlockArgument, std::string> findSharedHeads(func::FuncOp func,
                                                            const SplitGroup &group, bool all);

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PARTITION_SHAREDHEADS_H
