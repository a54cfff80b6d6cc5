//===- TableRows.h - Tables whose lookups exchange rows ---------*- C++ -*-===//
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

/// Size in bytes below which a table is gathered, because the gather takes less time than the
/// latency of the collectives for rows.
constexpr int64_t kSmallTable = 1 << 20;

/// Returns the elements of a row if lookups in the parameter `table` exchange rows instead of
/// gathering the table; else 0. A shard must consist of whole rows, and be at most 1/8 larger than
/// without this condition. With Auto, the table must not be small, and all ranks together must look
/// up at most half as many rows as the table has.
int64_t getRowSize(Value table, GatherRows when, int64_t shards, int64_t parts);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_TABLEROWS_H
