//===- AttentionOrder.h - Choice of the order of attention blocks --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Simulates launches of attention kernels by list scheduling (BlockOrder.h). From several orders of
// the blocks of threads, chooses the order with which the launch ends earliest. With a mask, blocks
// of threads have unequal work. If the longest blocks start last, most multiprocessors are idle at
// the end.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_GPU_ATTENTIONORDER_H
#define FSDP_ANALYSIS_GPU_ATTENTIONORDER_H

#include "fsdp/Analysis/AttentionTiles.h"
#include "fsdp/Analysis/Gpu/BlockOrder.h"

namespace mlir::fsdp {

/// The blocks of keys that one block of queries visits, or the blocks of queries that one block of
/// keys visits.
struct BlockVisits {
  struct Range {
    int64_t begin, end;
  };
  SmallVector<Range, 1> ranges; ///< disjoint, in ascending order, none of them empty
  int64_t free = 0;             ///< number of blocks that need no mask

  /// Adds the blocks of [begin, end) that follow the last range.
  void append(int64_t begin, int64_t end);
  int64_t count() const;
  /// Returns the numbers of all blocks, in ascending order.
  SmallVector<int64_t> list() const;
};

/// Returns, for each block of `size` queries, the blocks of keys that it visits. `extent` is the
/// total number of queries, and the bounds of `ranges` count blocks of keys. To obtain the blocks
/// of queries that each block of keys visits, a caller exchanges queries and keys in all arguments.
/// If a bound of a range depends on data, a block counts if it is visited with the least or with
/// the largest values of all scalars, and `free` is the smaller of both numbers. The function
/// evaluates the bounds for batch 0 and head 0.
std::vector<BlockVisits> getVisits(ArrayRef<TileRange> ranges, int64_t extent, int64_t size);

/// Returns false if all visited blocks have masked elements, for the arguments of getVisits().
/// Returns true if this is unknown, because a bound depends on data, on the batch or on the head.
bool mayVisitFree(ArrayRef<TileRange> ranges, int64_t extent, int64_t size);

/// Simulates a launch of the forward kernel with `slots` concurrent blocks of threads. A tile that
/// consists of row block i of some head takes `cycles[i]` cycles.
BlockScheduler scheduleQueries(const QueryOrder &order, ArrayRef<double> cycles, int64_t slots);

/// Returns the order with which a launch of the forward kernel ends earliest. `group` is the number
/// of query heads that share the keys of one kv head. A launch processes the heads in sections
/// (QueryOrder). The number of heads in a section is a multiple of `group` and at most
/// max(`mostTogether`, `group`). If all tiles take equal time, this number is `group`. If there is
/// a block of threads for each tile, there are no pairs of heads.
QueryOrder chooseQueryOrder(int64_t heads, int64_t group, int64_t blocks, int64_t mostTogether,
                            ArrayRef<double> cycles, int64_t slots);

/// Describes the work of the backward on one kv head, whose keys are divided into blocks.
struct KeyWork {
  std::vector<BlockVisits> visits; ///< the blocks of queries that each block of keys visits
  int64_t queryBlocks = 1, group = 1;
  /// Cycles of a visit that evaluates the mask, and cycles of a visit that needs no mask.
  double maskedCycles = 0, freeCycles = 0;
  /// Cycles that a block of keys takes in addition to its visits.
  double blockCycles = 0;
  /// The query heads of a kv head can be divided into parts (KeyOrder::parts). The addition of the
  /// sums of one part to the total takes `partCycles` cycles.
  double partCycles = 0;
  bool adds = true;     ///< whether blocks of keys add to the gradients of queries
  double addCycles = 0; ///< cycles of one addition to the gradients of a block of queries
  /// Whether the last of these blocks of keys loads the sums and rounds them instead of adding, and
  /// the cycles of a load and those by which rounding prolongs a visit.
  bool rounds = false;
  double loadCycles = 0, roundCycles = 0;
};

/// Simulates a launch of the backward kernel with `slots` concurrent blocks of threads. If there
/// are more than 2^22 additions, ignores the time that additions take. Returns nothing if a block
/// of threads would have to wait for a later block of threads.
std::optional<BlockScheduler> scheduleKeys(const KeyOrder &order, const KeyWork &work,
                                           int64_t slots);

/// Returns the order with which a launch of the backward kernel ends earliest. Tries the orders
/// `single` and `pairs` of KeyOrder. For both orders, tries the least and the greatest value of
/// `together`, and several values of `parts`. If `work.adds` is false, tries only the order
/// `single`, once with descending and once with ascending blocks of keys.
KeyOrder chooseKeyOrder(int64_t kvHeads, int64_t mostTogether, const KeyWork &work, int64_t slots);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_GPU_ATTENTIONORDER_H
