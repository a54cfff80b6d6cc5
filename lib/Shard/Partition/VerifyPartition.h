//===- VerifyPartition.h - Check a program of the axis tensor ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PARTITION_VERIFYPARTITION_H
#define FSDP_LIB_SHARD_PARTITION_VERIFYPARTITION_H

#include "fsdp/IR/TensorSplit.h"

namespace mlir::fsdp {

/// Verifies that each value of the program `step` is whole, split or a partial sum as its readers
/// expect, on the axes `tensor` and `context` of `mesh`. Emits an error at the first op for which
/// it is not.
LogicalResult verifyPartition(ModuleOp module, MeshOp mesh);

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PARTITION_VERIFYPARTITION_H
