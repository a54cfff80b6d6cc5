//===- QueryScores.h - Gradients of scores with queries as rows -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the class that the kernels for dQ use on all chips, like KeyScores for dK and dV. A
// block of threads owns a block of queries of one head and visits the blocks of keys that are not
// entirely masked. A warp owns 16 queries, as rows of the accumulators of mma and wgmma.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_QUERYSCORES_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_QUERYSCORES_H

#include "Sm80Backward.h"

namespace mlir::fsdp::attention {

class QueryScores {
public:
  /// Creates the object for the scores of `blockQueries` queries with `blockKeys` keys at a time.
  /// `layout` is the layout of the scores of a warp. emit() computes dS and sums contributions to
  /// captured tensors that depend on no key or, if `tables` is true, only adds contributions to
  /// tables.
  QueryScores(GpuBuilder &b, const Sm80Problem &problem, int64_t blockQueries, int64_t blockKeys,
              tile::Layout layout, bool tables);

  const int64_t blockQueries, blockKeys;
  const tile::Layout layout;
  Value firstQuery, number; ///< number: of the head, counted over all batches
  Head head;
  SmallVector<Value> numbers; ///< row numbers of the lane's queries in the tensor
  std::optional<ScoreGradients> functions;
  std::optional<BlockSequence> blocks;

  bool wholeCols() const { return shape.cols % blockKeys == 0; }
  /// Return true if some block of keys may contain masked elements, or none.
  bool isEverMasked() { return !op.getMaskMod().empty() || !wholeCols(); }
  bool isEverFree() const;

  /// Selects block `block` of the queries of head `number`.
  void placeBlock(Value number, Value block);
  /// Type of a callback that returns lse and δ of the query `row`. `existing` is the last query if
  /// the query does not exist, so that `exists` is false.
  using Norms = function_ref<std::pair<Value, Value>(Value row, Value existing, Value exists)>;
  /// Selects the queries of this lane, which is in warp `warp` of the block, and loads the factors
  /// of contributions to tables.
  void placeLane(Value warp, Norms norms);

  /// Returns the number of registers for the contributions of a lane: sums by head, sums for each
  /// of its queries, and largest magnitudes of those that depend on query and key.
  int64_t numSums() const;
  /// Returns the registers of dS of a tile whose first key is `firstKey`, and the updated sums.
  /// With tables there are neither. The values of a column are computed once for all rows. `drawn`
  /// has the results of draw(), which computes the random numbers of the tile.
  SmallVector<Value> emit(ArrayRef<Value> s, ArrayRef<Value> dp, Value firstKey, bool masked,
                          ArrayRef<Value> drawn, ArrayRef<Value> sums);
  SmallVector<Value> draw(Value firstKey) const;
  /// Stores the sums over a warp and over rows to scratch. `warp` is the number of the warp among
  /// the `warps` warps that own the block of queries.
  void storeSums(ArrayRef<Value> sums, Value warp, int64_t warps);

private:
  void contribute(int64_t row, ValueAt at, const tile::Site &site, FragmentFunction::Values &values,
                  Value keep, MutableArrayRef<Value> sums);

  GpuBuilder &b;
  const Shape &shape;
  AttentionGradOp op;
  const Sm80Captures &captures;
  bool tables;
  SmallVector<const Sm80Contribution *> perHead, perRow, perElement;
  SmallVector<TileRange> ranges;
  SmallVector<Value> exist, scales;
  SmallVector<Query> queries;
};

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_QUERYSCORES_H
