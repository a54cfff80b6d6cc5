//===- AttentionOrder.h - Choice of the order of attention blocks --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Models launches of attention kernels by list scheduling (BlockOrder.h), and chooses the order of
// blocks of threads with the earliest end. A mask gives blocks of threads unequal work; an order
// that starts the longest blocks last leaves most multiprocessors idle at the end.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_GPU_ATTENTIONORDER_H
#define FSDP_ANALYSIS_GPU_ATTENTIONORDER_H

#include "fsdp/Analysis/AttentionTiles.h"
#include "fsdp/Analysis/Gpu/BlockOrder.h"

namespace mlir::fsdp {

/// Blocks of keys that a block of queries visits, or the reverse, in ascending order.
struct BlockVisits {
  SmallVector<int64_t> blocks;
  int64_t free = 0; ///< number of visited blocks without masked elements
};

/// Returns the visits of each block of `size` queries (or keys); there are `extent` queries (or
/// keys). `ranges` are in blocks of keys (or queries). If a bound depends on data, assumes its
/// extreme and counts no block as free. If a bound depends on batch or head, assumes batch 0 and
/// head 0.
std::vector<BlockVisits> getVisits(ArrayRef<TileRange> ranges, int64_t extent, int64_t size);

//===----------------------------------------------------------------------===//
// Tiles of queries
//===----------------------------------------------------------------------===//

/// Schedules a launch of the forward kernel. `cycles[i]` is the duration of a tile of row block i.
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
  std::vector<BlockVisits> visits; ///< by block of keys: the blocks of queries that it visits
  int64_t queryBlocks = 1, group = 1;
  double maskedCycles = 0, freeCycles = 0; ///< cycles per visited block of queries
  double blockCycles = 0;                  ///< cycles per block of keys, without its visits
  double partCycles = 0; ///< cycles to add the sums of one part to those of other parts
  bool adds = true;      ///< whether blocks of keys add to the gradients of queries
  double addCycles = 0;  ///< cycles of one addition
};

/// Schedules a launch. Leaves additions out if there are more than 2^22. Returns nothing if a block
/// of threads would wait for a later block.
std::optional<BlockScheduler> scheduleKeys(const KeyOrder &order, const KeyWork &work,
                                           int64_t slots);

/// Returns the order with the earliest end. Considers single blocks and pairs, `together` for at
/// most `mostTogether` heads, and each number of equal parts. If no block adds to the gradients of
/// queries, considers only single blocks, in descending and ascending order.
KeyOrder chooseKeyOrder(int64_t kvHeads, int64_t mostTogether, const KeyWork &work, int64_t slots);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_GPU_ATTENTIONORDER_H
