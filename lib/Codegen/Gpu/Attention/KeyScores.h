//===- KeyScores.h - Gradients of scores with keys as rows ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the class that the kernels for dK and dV use on all chips. A block of threads owns a
// block of keys of one kv head and visits the query heads that share this kv head. A warp owns 16
// keys of the block, as rows of the accumulators of mma and wgmma.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_KEYSCORES_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_KEYSCORES_H

#include "Sm80Backward.h"

namespace mlir::fsdp::attention {

class KeyScores {
public:
  /// Creates the object for the scores of `blockKeys` keys with `blockQueries` queries at a time.
  /// `layout` is the layout of the scores of a warp, for all or some queries of a block. If
  /// `wantsK` is true, emit() computes dS. If `wantsQ` is true, dS of keys that do not exist is 0,
  /// because dQ sums over keys, and contributions are summed that do not depend on the key. If
  /// `tables` is true, emit() instead adds contributions to tables.
  KeyScores(GpuBuilder &b, const Sm80Problem &problem, int64_t blockKeys, int64_t blockQueries,
            tile::Layout layout, bool wantsK, bool wantsQ, bool tables = false);

  const int64_t blockKeys, blockQueries;
  const tile::Layout layout;
  Value firstKey, kvHead, batch;
  Head head;
  SmallVector<Value> numbers; ///< row numbers of the lane's keys in the tensor
  std::optional<ScoreGradients> functions;
  std::optional<BlockSequence> blocks;

  int64_t keyBlocks() const { return llvm::divideCeil(shape.cols, blockKeys); }
  bool wholeRows() const { return shape.rows % blockQueries == 0; }
  /// Returns true if several query heads share keys and each head has one block of queries. Then a
  /// block of keys only loops over heads, and LLVM moves values that are equal for all heads, such
  /// as masks, before this loop.
  bool loopsOnlyOverHeads() const { return shape.group > 1 && shape.rows <= blockQueries; }
  /// Returns true if some block of queries may contain masked elements.
  bool isEverMasked() { return !op.getMaskMod().empty() || !wholeRows(); }

  /// Returns true if some block of queries may be free of masked elements.
  bool isEverFree() const;

  /// Selects block `block` of the keys of kv head `number`. The heads are counted over all batches.
  void placeBlock(Value number, Value block);
  /// Sets the value that tells at run time whether the blocks of queries are visited in reverse
  /// order. If `backwards` is null, the blocks are never visited in reverse order.
  void setDirection(Value backwards) { this->backwards = backwards; }
  Value isBackwards() const { return backwards; }
  /// Selects the keys of this lane, which is in warp `warp` of the block.
  void placeLane(Value warp);
  /// Selects a query head: the head with the number `group` among the heads that share the keys.
  void placeHead(Value group);
  /// Returns the sequence of the blocks of queries that are not entirely masked for the block of
  /// keys that begins at `firstKey`.
  BlockSequence blocksOf(Value firstKey) const;
  /// Returns the number of the block of queries at position `turn` of the sequence `blocks`.
  Value blockAt(Value turn);
  /// Returns the 64-bit number of the query head, counted over all batches.
  Value headNumber() { return b.add(b.mul(batch, shape.heads), head.head); }

  /// Type of a callback that returns lse or δ of a query. The argument is the distance of the query
  /// from the first query of the lane.
  using Norm = function_ref<Value(int64_t)>;
  /// Type of a callback that emit() calls after each 16 queries of a tile. If it returns true,
  /// emit() ends the block of code there (GpuBuilder::endBlock()). emit() calls it for tiles that
  /// take most registers, and for all tiles with sums by query. `queries` is the number of queries
  /// for which emit() has emitted code. `rows` belongs to contributions that are summed by query:
  /// each has one sum per query of this lane, over the keys of the lane. `rows` is complete after
  /// each `rowQueries` queries.
  static constexpr int64_t rowQueries = 32, sumsOfRow = rowQueries / 4;
  using AfterQueries = function_ref<bool(int64_t queries, ArrayRef<Value> rows)>;
  /// Emits the computation of P and dS for a tile whose first query is `firstRow`. Returns the
  /// registers of (f·P)ᵀ, then the registers of dSᵀ, then the updated sums `columns`. `dp` is empty
  /// if dS is not needed. `drawn` has the results of draw(), which computes the random numbers of
  /// the tile.
  SmallVector<Value> emit(ArrayRef<Value> s, ArrayRef<Value> dp, Value firstRow, Norm lse,
                          Norm delta, bool masked, ArrayRef<Value> drawn, ArrayRef<Value> columns,
                          AfterQueries after = nullptr);
  SmallVector<Value> draw(Value firstRow);
  /// If set, a 16-bit type: emit() then returns words of two results each instead of registers.
  Type packed;
  /// For plain scores, weigh() returns Pᵀ, and differentiate() returns dSᵀ from Pᵀ, of such a tile.
  SmallVector<Value> weigh(ArrayRef<Value> s, Value firstRow, Norm lse, bool masked);
  SmallVector<Value> differentiate(ArrayRef<Value> p, ArrayRef<Value> dp, Norm delta);
  bool arePlain() const { return functions->isPlain(); }
  bool mixes() { return !op.getWeightMod().empty(); }
  /// A lane sums its contributions to captured tensors for each of its keys (numColumns() sums),
  /// then those that depend only on the head. It then records the largest magnitudes of those that
  /// depend on query and key, and of sums for each query (numRows() magnitudes). emptyColumns()
  /// returns the initial values.
  SmallVector<Value> emptyColumns() {
    int64_t others = tables ? 0 : perHead.size() + perElement.size() + perRow.size();
    return SmallVector<Value>(numColumns() + others, b.number(0));
  }
  int64_t numColumns() const { return perColumn.size() * layout.rowsOfLane(); }
  int64_t numRows() const { return perRow.size(); }
  /// Prepares the factors of contributions to tables.
  void loadScales();
  /// Stores the sum `number` of those for the query `query` to scratch if the query exists, and
  /// returns the larger one of `largest` and the magnitude of the sum.
  Value storeRow(int64_t number, Value query, Value sum, Value largest);
  /// Store the sums to scratch: those for each key, and the others. `warp` is the number of the
  /// warp among the `warps` warps that own the block of keys.
  void storeColumns(ArrayRef<Value> columns);
  void storeOthers(ArrayRef<Value> others, Value warp, int64_t warps);

private:
  Query queryAt(Value firstRow, int64_t at, Value lse, Value delta, bool masked);
  void addToSums(int64_t row, ValueAt at, Value keep, MutableArrayRef<Value> sums);
  void addToRows(int64_t at, ValueAt valueAt, Value keep, MutableArrayRef<Value> sums);

  GpuBuilder &b;
  const Shape &shape;
  AttentionGradOp op;
  const Sm80Captures &captures;
  // The contributions that are summed by key, by head, by query, or in tables; empty if dS is not
  // computed.
  SmallVector<const Sm80Contribution *> perColumn, perHead, perRow, perElement;
  bool tables;
  SmallVector<Value> scales; ///< of the contributions to tables
  SmallVector<TileRange> ranges;
  bool checksKeys;
  Value backwards;
  SmallVector<Key> keys;
};

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_KEYSCORES_H
