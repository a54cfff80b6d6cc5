//===- ForwardScores.h - From scores to weights in registers ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes the softmax of the forward pass on a lane's elements of Q · Kᵀ. The class is used for
// all chips whose accumulators have the layout of mma (see Fragment.h).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_FORWARDSCORES_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_FORWARDSCORES_H

#include "Sm80Attention.h"

namespace mlir::fsdp::attention {

class ForwardScores {
public:
  /// Creates the object for the scores of one head. `layout` is the layout of the scores for one
  /// block of keys.
  ForwardScores(GpuBuilder &b, AttentionOp op, const Shape &shape, tile::Layout layout,
                const Head &head);

  /// The state of the online softmax for the rows of a lane, after the keys visited so far. For
  /// each row, `max` holds the maximum of the results of toMax(), and `sum` holds the sum over the
  /// columns of this lane.
  struct State {
    SmallVector<Value> max, sum;
  };
  State start();
  int64_t rowsOfLane() const { return layout.rowsOfLane(); }
  /// Sets the lane's first row. The lane's other rows follow at distances of 8 rows.
  void placeRows(Value first);
  SmallVector<Value> rowNumbers() const;

  /// Returns true if some block can contain masked elements.
  bool canBeMasked() const { return !mask.empty() || !wholeCols(); }
  /// Applies score_mod to scores and, if `masked` is true, also mask_mod. If `endsBlocks` is true,
  /// ptxas does not keep values of captured tensors for all masked columns in registers at once.
  tile::Fragment modify(tile::Fragment s, Value firstCol, bool masked,
                        bool endsBlocks = false) const;
  bool mixes() const { return !weight.empty(); }
  /// Returns true if modify() must also be called for blocks without masked elements.
  bool alwaysModifies() const { return !score.empty() || !foldsScale(); }
  /// Computes the weights P of scores S and updates `state`. Afterwards the caller must multiply
  /// each row of the sums of O by the row's `correction`.
  tile::Fragment softmax(const tile::Fragment &s, State &state,
                         SmallVector<Value> &correction) const;
  /// Returns P · weight_mod. If P is 0, the result is 0 even if weight_mod is NaN or infinity,
  /// which is possible for masked elements. `drawn` has the results of draw(), which computes the
  /// random numbers of the tile.
  tile::Fragment weigh(tile::Fragment p, Value firstCol, ArrayRef<Value> drawn) const;
  SmallVector<Value> draw(Value firstCol) const;
  /// Returns, for each row, the factor by which the sums of O must be multiplied at the end. The
  /// factor is 0 for rows whose keys are all masked. Also stores log-sum-exps to `lse`, unless the
  /// base of `lse` is null.
  SmallVector<Value> finish(const State &state, const Pointer &lse) const;

  FragmentFunction score, mask, weight;

private:
  /// The emitted values that belong to one of the lane's rows.
  struct Row {
    Value number; ///< number of the row in the tensor, which may not exist
    /// The number of the row to read: `number`, or the last row's number if `number` is too large.
    Value existing;
    FragmentFunction::Values score, mask, weight;
  };
  bool foldsScale() const;
  /// Returns the constant c; see ForwardScores.cpp.
  Value factor() const;
  Value toMax(Value score) const;
  Value expOf(Value x, Value shift) const;
  bool wholeCols() const { return shape.cols % layout.numCols() == 0; }

  GpuBuilder &b;
  mutable AttentionOp op;
  const Shape &shape;
  const tile::Layout layout;
  const Head head;
  SmallVector<Row> rows;
};

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_FORWARDSCORES_H
