//===- KeyScores.h - Gradients of scores with keys as rows ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the kernels of dK and dV have in common, whatever multiplies in them: a block of threads has
// a block of keys of one kv head and goes through the query heads that share it. 16 rows of a block
// belong to a warp, as mma and wgmma leave sums.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_KEYSCORES_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_KEYSCORES_H

#include "Sm80Backward.h"

namespace mlir::fsdp::attention {

class KeyScores {
public:
  /// Blocks of `blockKeys` keys meet blocks of `blockQueries`; `layout`: what a warp has of the
  /// scores of both, or of some of the queries. `wantsK`: dS is. `wantsQ`: dS is read across keys,
  /// so that it is 0 of those that do not exist.
  KeyScores(GpuBuilder &b, const Sm80Problem &problem, int64_t blockKeys, int64_t blockQueries,
            tile::Layout layout, bool wantsK, bool wantsQ);

  const int64_t blockKeys, blockQueries;
  const tile::Layout layout;
  Value firstKey, kvHead, batch;
  Head head;
  SmallVector<Value> numbers; ///< of the keys of a lane
  std::optional<ScoreGradients> functions;
  std::optional<BlockSequence> blocks;

  int64_t keyBlocks() const { return llvm::divideCeil(shape.cols, blockKeys); }
  bool wholeRows() const { return shape.rows % blockQueries == 0; }
  /// Whether some block of queries is to be masked.
  bool isEverMasked() { return !op.getMaskMod().empty() || !wholeRows(); }

  /// Block `block` of keys of the number-th kv head, of all batches.
  void placeBlock(Value number, Value block);
  /// Of it, what the warp-th warp has.
  void placeLane(Value warp);
  /// The group-th of the query heads that share the keys.
  void placeHead(Value group);
  /// The blocks of queries that the block of keys from `firstKey` on meets.
  BlockSequence blocksOf(Value firstKey) const;
  /// Number of the head among those of all batches, 64 bits.
  Value headNumber() { return b.add(b.mul(batch, shape.heads), head.head); }

  /// lse or δ of a query: the number of its column, counted from the first of a lane.
  using Norm = function_ref<Value(int64_t)>;
  /// (f·P)ᵀ and dSᵀ of a tile whose first query is `firstRow`, one after another, then the sums
  /// of columns. `dp` is empty where dS is not asked for.
  SmallVector<Value> emit(ArrayRef<Value> s, ArrayRef<Value> dp, Value firstRow, Norm lse,
                          Norm delta, bool masked, ArrayRef<Value> columns);
  /// Sums of what each key of this lane contributes to captured tensors: at first, and into
  /// scratch.
  SmallVector<Value> emptyColumns() { return SmallVector<Value>(numColumns(), b.number(0)); }
  int64_t numColumns() const { return perColumn.size() * layout.rowsOfLane(); }
  void storeColumns(ArrayRef<Value> columns);

private:
  Query queryAt(Value firstRow, int64_t at, Norm lse, Norm delta, bool masked);

  GpuBuilder &b;
  const Shape &shape;
  AttentionGradOp op;
  const Sm80Captures &captures;
  SmallVector<const Sm80Contribution *> perColumn; ///< empty where dS is not known
  SmallVector<TileRange> ranges;
  bool checksKeys;
  SmallVector<Key> keys;
};

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_KEYSCORES_H
