//===- AttentionOrder.h - Choice of the order of attention blocks --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Simulates launches of attention kernels by list scheduling (BlockOrder.h), and chooses the order
// of the blocks of threads with which the launch ends earliest. With a mask, blocks of threads have
// unequal work. If the longest blocks start last, most multiprocessors are idle at the end.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_GPU_ATTENTIONORDER_H
#define FSDP_ANALYSIS_GPU_ATTENTIONORDER_H

#include "fsdp/Analysis/AttentionTiles.h"
#include "fsdp/Analysis/Gpu/BlockOrder.h"

namespace mlir::fsdp {

/// Blocks of keys that a block of queries visits, or blocks of queries that a block of keys visits,
/// in ascending order.
struct BlockVisits {
  SmallVector<int64_t> blocks;
  int64_t free = 0; ///< number of visited blocks that need no mask
};

/// Returns the visits of each block of `size` queries (or keys), of which there are `extent` in
/// total. `ranges` are in units of blocks of keys (or queries). If a bound of a range depends on
/// data, uses the widest range and counts none of its blocks in `free`. Evaluates bounds for batch
/// 0 and head 0.
std::vector<BlockVisits> getVisits(ArrayRef<TileRange> ranges, int64_t extent, int64_t size);

//===----------------------------------------------------------------------===//
// Tiles of queries
//===----------------------------------------------------------------------===//

/// Simulates a launch of the forward kernel with `slots` concurrent blocks of threads. `cycles[i]`
/// is the duration of a tile of row block i.
BlockScheduler scheduleQueries(const QueryOrder &order, ArrayRef<double> cycles, int64_t slots);

/// Returns the order with which the launch ends earliest. A section of the order has at most
/// max(`mostTogether`, `group`) heads, a multiple of `group`, the number of heads that share keys.
/// If all tiles take equal time, a section has `group` heads. With a block of threads for each
/// tile, there are no pairs.
QueryOrder chooseQueryOrder(int64_t heads, int64_t group, int64_t blocks, int64_t mostTogether,
                            ArrayRef<double> cycles, int64_t slots);

//===----------------------------------------------------------------------===//
// Blocks of keys, which may add to the gradients of queries
//===----------------------------------------------------------------------===//

/// Work of the backward for the blocks of keys of one kv head.
struct KeyWork {
  std::vector<BlockVisits> visits; ///< for each block of keys, the visited blocks of queries
  int64_t queryBlocks = 1, group = 1;
  double maskedCycles = 0, freeCycles = 0; ///< cycles per visit, with and without mask
  double blockCycles = 0;                  ///< cycles per block of keys outside its visits
  double partCycles = 0; ///< cycles to add the sums of one of KeyOrder's `parts` to the total
  bool adds = true;      ///< whether blocks of keys add to the gradients of queries
  double addCycles = 0;  ///< cycles to add to the gradients of one block of queries
};

/// Simulates a launch of the backward kernel with `slots` concurrent blocks of threads. Ignores the
/// cost of more than 2^22 additions. Returns nothing if a block would wait for a later block.
std::optional<BlockScheduler> scheduleKeys(const KeyOrder &order, const KeyWork &work,
                                           int64_t slots);

/// Returns the order with which the launch ends earliest. Tries `single` and `pairs` of KeyOrder,
/// each with the least and the greatest possible `together`, and several values of `parts`. If
/// `work.adds` is false, tries only `single`, in descending and ascending order.
KeyOrder chooseKeyOrder(int64_t kvHeads, int64_t mostTogether, const KeyWork &work, int64_t slots);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_GPU_ATTENTIONORDER_H
