//===- TableRows.h - Tables that are read by rows ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_SHARD_TABLEROWS_H
#define FSDP_SHARD_TABLEROWS_H

#include "fsdp/Options/OptionTypes.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace mlir {
namespace fsdp {

/// Tables of fewer bytes are gathered before the collectives that rows need would have started.
constexpr int64_t kSmallTable = 1 << 20;

/// Elements of a row, where lookups of the parameter `table` take rows; 0 where they do not.
/// `shards`: ranks that have a part of it each; a shard has to be whole rows without getting larger
/// by more than an eighth. `when`: Auto is where all ranks together look up at most half as many
/// rows as the table has, and it is not small.
int64_t getRowSize(Value table, GatherRows when, int64_t shards, int64_t parts);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_TABLEROWS_H
