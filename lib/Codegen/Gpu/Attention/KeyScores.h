//===- KeyScores.h - Gradients of scores with keys as rows ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the class that the kernels of dK and dV on all chips share. A block of threads owns a
// block of keys of one kv head and visits the query heads that share this kv head. A warp owns 16
// rows of the block, as in the accumulators of mma and wgmma.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_KEYSCORES_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_KEYSCORES_H

#include "Sm80Backward.h"

namespace mlir::fsdp::attention {

class KeyScores {
public:
  /// Creates the scores of blocks of `blockKeys` keys and `blockQueries` queries. `layout` is the
  /// layout of a warp's scores for all or some queries of a block. If `wantsK` is true, emit()
  /// computes dS. If `wantsQ` is true, dS is 0 for missing keys, because dQ sums over keys.
  KeyScores(GpuBuilder &b, const Sm80Problem &problem, int64_t blockKeys, int64_t blockQueries,
            tile::Layout layout, bool wantsK, bool wantsQ);

  const int64_t blockKeys, blockQueries;
  const tile::Layout layout;
  Value firstKey, kvHead, batch;
  Head head;
  SmallVector<Value> numbers; ///< row numbers of the lane's keys in the tensor
  std::optional<ScoreGradients> functions;
  std::optional<BlockSequence> blocks;

  int64_t keyBlocks() const { return llvm::divideCeil(shape.cols, blockKeys); }
  bool wholeRows() const { return shape.rows % blockQueries == 0; }
  /// Returns true if some block of queries may contain masked elements.
  bool isEverMasked() { return !op.getMaskMod().empty() || !wholeRows(); }

  /// Returns true if some block of queries may be free of masked elements.
  bool isEverFree() const;

  /// Selects block `block` of the keys of kv head `number`, counted over all batches.
  void placeBlock(Value number, Value block);
  /// Visits blocks of queries in reverse order if `backwards` is true. Null means forwards.
  void setDirection(Value backwards) { this->backwards = backwards; }
  Value isBackwards() const { return backwards; }
  /// Selects the keys of this lane in warp `warp` of the block.
  void placeLane(Value warp);
  /// Selects query head `group` of the heads that share the keys.
  void placeHead(Value group);
  /// Returns the blocks of queries that are not entirely masked for the keys at `firstKey`.
  BlockSequence blocksOf(Value firstKey) const;
  /// Returns the number of the block of queries at position `turn` of the sequence.
  Value blockAt(Value turn);
  /// Returns the 64-bit number of the query head, counted over all batches.
  Value headNumber() { return b.add(b.mul(batch, shape.heads), head.head); }

  /// Callback that returns lse or δ of a query, given its distance from the lane's first query.
  using Norm = function_ref<Value(int64_t)>;
  /// Returns the registers of (f·P)ᵀ and of dSᵀ and the updated sums `columns`, for a tile whose
  /// first query is `firstRow`. `dp` is empty if dS is not needed.
  SmallVector<Value> emit(ArrayRef<Value> s, ArrayRef<Value> dp, Value firstRow, Norm lse,
                          Norm delta, bool masked, ArrayRef<Value> columns);
  /// For plain scores, return Pᵀ, and dSᵀ from Pᵀ, of such a tile.
  SmallVector<Value> weigh(ArrayRef<Value> s, Value firstRow, Norm lse, bool masked);
  SmallVector<Value> differentiate(ArrayRef<Value> p, ArrayRef<Value> dp, Norm delta);
  bool arePlain() const { return functions->isPlain(); }
  /// Sums of the contributions of each of the lane's keys to captured tensors: initial values,
  /// number of sums, and code that stores them to scratch.
  SmallVector<Value> emptyColumns() { return SmallVector<Value>(numColumns(), b.number(0)); }
  int64_t numColumns() const { return perColumn.size() * layout.rowsOfLane(); }
  void storeColumns(ArrayRef<Value> columns);

private:
  Query queryAt(Value firstRow, int64_t at, Value lse, Value delta, bool masked);

  GpuBuilder &b;
  const Shape &shape;
  AttentionGradOp op;
  const Sm80Captures &captures;
  SmallVector<const Sm80Contribution *> perColumn; ///< contributions summed by key; empty if no dS
  SmallVector<TileRange> ranges;
  bool checksKeys;
  Value backwards;
  SmallVector<Key> keys;
};

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_KEYSCORES_H
