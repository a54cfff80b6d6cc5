//===- AttentionOrder.h - Choice of the order of attention blocks --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Models launches of attention kernels by list scheduling (BlockOrder.h), and chooses the order of
// blocks of threads that ends first. A mask gives blocks of threads unequal work; an order that
// starts the longest ones last leaves most multiprocessors idle at the end.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_GPU_ATTENTIONORDER_H
#define FSDP_ANALYSIS_GPU_ATTENTIONORDER_H

#include "fsdp/Analysis/AttentionTiles.h"
#include "fsdp/Analysis/Gpu/BlockOrder.h"

namespace mlir::fsdp {

/// Blocks of the other side that a block visits, in ascending order.
struct BlockVisits {
  SmallVector<int64_t> blocks;
  int64_t free = 0; ///< number of those without masked elements
};

/// Returns the visits of each block of `size` elements of a side with `extent` elements. `ranges`
/// are in blocks of the other side. Bounds that depend on data are taken at their extremes, with no
/// free block; bounds that depend on batch or head are those of the first.
std::vector<BlockVisits> getVisits(ArrayRef<TileRange> ranges, int64_t extent, int64_t size);

//===----------------------------------------------------------------------===//
// Tiles of queries
//===----------------------------------------------------------------------===//

/// Schedules a launch. `cycles` are those of a tile, by its row block.
BlockScheduler scheduleQueries(const QueryOrder &order, ArrayRef<double> cycles, int64_t slots);

/// Returns the order that ends first, of those whose sections have at most `mostTogether` heads.
/// Sections consist of whole groups of `group` heads that share keys. If all tiles are equal,
/// sections have one group. With a block of threads for each tile, there are no pairs.
QueryOrder chooseQueryOrder(int64_t heads, int64_t group, int64_t blocks, int64_t mostTogether,
                            ArrayRef<double> cycles, int64_t slots);

//===----------------------------------------------------------------------===//
// Blocks of keys, which may add to the gradients of queries
//===----------------------------------------------------------------------===//

/// Work of the blocks of keys of one kv head.
struct KeyWork {
  std::vector<BlockVisits> visits; ///< blocks of queries of each block of keys
  int64_t queryBlocks = 1, group = 1;
  double maskedCycles = 0, freeCycles = 0; ///< of a visited block of queries
  double blockCycles = 0;                  ///< of a block of keys, beside its visits
  double partCycles = 0;                   ///< to add a part's sums to those of other parts
  bool adds = true;     ///< whether blocks of keys add to the gradients of queries
  double addCycles = 0; ///< of such an addition
};

/// Schedules a launch. Additions are omitted if there are more than 2^22. Returns nothing if a
/// block of threads would wait for a later one.
std::optional<BlockScheduler> scheduleKeys(const KeyOrder &order, const KeyWork &work,
                                           int64_t slots);

/// Returns the order that ends first: single blocks or pairs, of at most `mostTogether` heads
/// together, with any number of equal parts. If no block adds to the gradients of queries, only
/// single blocks are considered, in both orders.
KeyOrder chooseKeyOrder(int64_t kvHeads, int64_t mostTogether, const KeyWork &work, int64_t slots);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_GPU_ATTENTIONORDER_H
