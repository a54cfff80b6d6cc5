//===- TableRows.cpp - Tables whose lookups exchange rows -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A step begins with a lookup in the embedding table, which is often the largest parameter. If the
// whole table were gathered, the step would begin with a gather that cannot overlap with any
// computation. The lookup needs only one row per token. With V rows, n ranks and T ids per rank:
//
//           forward                      backward
//   whole   all-gather V rows            reduce-scatter V rows
//   rows    reduce-scatter n · T rows    all-gather n · T rows
//
//  1. Compute T, the number of ids of all lookups in the table.
//  2. Exchange rows if n · T is at most V / 2 and the table is not small. An exchange cannot
//     overlap with computation, and adds the latency of two collectives. If a tied output layer
//     also reads the table, its gather of the whole table can overlap with computation.
//  3. Do not exchange rows if shards that consist of whole rows would need much padding.
//
// The time is O(readers of the table).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Shard/TableRows.h"

#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/Shard/Layout.h"

using namespace mlir;
using namespace mlir::fsdp;

int64_t mlir::fsdp::getRowSize(Value table, GatherRows when, int64_t shards, int64_t parts) {
  auto type = cast<RankedTensorType>(table.getType());
  if (when == GatherRows::Never || shards == 1 || type.getRank() != 2 ||
      type.getNumElements() == 0 || !isa<FloatType>(type.getElementType()))
    return 0;
  int64_t ids = 0;
  for (Operation *user : table.getUsers())
    if (auto lookup = dyn_cast<GatherRowsOp>(user))
      ids += cast<RankedTensorType>(lookup.getIds().getType()).getNumElements();
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  bool pays = ids <= rows / 2 / shards && getStorageBytes(type) >= kSmallTable;
  if (ids == 0 || (when == GatherRows::Auto && !pays))
    return 0;
  ParamExtent extent{type.getNumElements(), /*decay=*/true};
  UnitLayout plain = layOutUnit(extent, shards, parts),
             whole = layOutUnit(extent, shards, parts, kOffsetAlignment, columns);
  return whole.shardSize - plain.shardSize <= plain.shardSize / 8 ? columns : 0;
}
