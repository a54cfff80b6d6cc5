//===- ForwardScores.h - From scores to weights, in registers ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the forward of attention does with the sums of Q · Kᵀ, as a lane has them: the same on every
// machine whose fragments are those of mma (see Fragment.h).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_FORWARDSCORES_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_FORWARDSCORES_H

#include "Sm80Attention.h"

namespace mlir::fsdp::attention {

class ForwardScores {
public:
  /// Of a head; `layout` is that of its scores with a block of keys.
  ForwardScores(GpuBuilder &b, AttentionOp op, const Shape &shape, tile::Layout layout,
                const Head &head);

  /// What is known of a lane's rows while it goes through keys.
  struct State {
    SmallVector<Value> max, sum; ///< max: as toMax gives it; sum: of this lane's columns
  };
  State start();
  int64_t rowsOfLane() const { return layout.rowsOfLane(); }
  /// The lane's first row; the others are 8 apart.
  void placeRows(Value first);
  SmallVector<Value> rowNumbers() const;

  /// Whether there are blocks of which something may be masked.
  bool canBeMasked() const { return !mask.empty() || !wholeCols(); }
  /// Scores by score_mod and, where `masked`, mask_mod.
  tile::Fragment modify(tile::Fragment s, Value firstCol, bool masked) const;
  /// Whether modify does something where nothing is masked.
  bool alwaysModifies() const { return !score.empty() || !foldsScale(); }
  /// P over S, and the state after it; what was summed before is to be multiplied by `correction`,
  /// by row.
  tile::Fragment softmax(const tile::Fragment &s, State &state,
                         SmallVector<Value> &correction) const;
  /// P · weight_mod; a factor where the mask masks may be anything.
  tile::Fragment weigh(tile::Fragment p, Value firstCol) const;
  /// Factors for the rows of O: 0 where there was no key. Log-sum-exps go to `lse`, when it has a
  /// base.
  SmallVector<Value> finish(const State &state, const Pointer &lse) const;

  FragmentFunction score, mask, weight;

private:
  /// What a lane knows of one of its rows.
  struct Row {
    Value number;   ///< in the matrix
    Value existing; ///< the same, or the last row
    FragmentFunction::Values score, mask, weight;
  };
  bool foldsScale() const;
  Value factor() const; ///< c
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
