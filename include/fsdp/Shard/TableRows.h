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

/// Size in bytes below which a table is gathered as a whole. The gather of a smaller table takes
/// less time than the latency of the collectives that would exchange its rows.
constexpr int64_t kSmallTable = 1 << 20;

/// Returns the number of elements per row if lookups in the parameter `table` can exchange single
/// rows instead of gathering the whole table. Returns 0 if lookups must gather the whole table.
/// Lookups can exchange single rows only if shards that consist of whole rows are at most 1/8
/// larger than other shards. If `when` is Auto, the table must also have at least `kSmallTable`
/// bytes, and at least twice as many rows as all ranks together look up.
int64_t getRowSize(Value table, GatherRows when, int64_t shards, int64_t parts);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_TABLEROWS_H
