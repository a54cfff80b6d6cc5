//===- AttentionBackward.h - Gradients of attention on CPUs -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The plan and the emitter of the gradients of attention (AttentionBackward.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONBACKWARD_H
#define FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONBACKWARD_H

#include "Attention.h"
#include "AttentionCaptures.h"
#include "Codegen/Kernel/Lowering.h"

namespace mlir::fsdp::attention {

using tile::Arithmetic, tile::CpuTiles, tile::Matrix, tile::Numbers, tile::ScoreFunction;

struct BackwardPlan : Plan {
  BackwardPlan(const Shape &shape, const Numbers &numbers);
  void takeParts(const Units &units);
  bool isFma() const { return numbers.arithmetic == Arithmetic::Fma; }
  /// Returns the number of rows whose S, dP, P and dS are computed in one pass. With AMX tiles, S
  /// and dP of a pass fit into the L1 cache.
  int64_t passRows() const {
    constexpr int64_t rows = 2 * amx::tileSize;
    return numbers.arithmetic == Arithmetic::Tiles && blockRows % rows == 0 ? rows : blockRows;
  }

  /// Number of rows of a head in scratch, rounded up such that the last fragment of the last block
  /// fits.
  int64_t paddedRows = 0;
  Part q, qAcross, dout, doutAcross, lse, delta, dq;
  Part kT, vT, kAcross, dk, dv, scores, gradients, gradientsAcross, transposed, bounds;
  int64_t dqShared = 0;
};

class BackwardEmitter : public Emitter {
public:
  BackwardEmitter(CpuTiles &b, BackwardPlan &plan, AttentionGradOp op, func::FuncOp kernel,
                  Captures &captures, Units units)
      : Emitter(b, plan), plan(plan), op(op), kernel(kernel), captures(captures), units(units),
        ranges(AttentionTiles(op).getRowTiles(plan.blockRows)) {
    plan.bounds = plan.take(std::max<int64_t>(ranges.size(), 1), 4, sizeof(int64_t));
  }
  void emitMain(func::FuncOp phase);
  void emitClear(func::FuncOp phase);
  void emitSum(func::FuncOp phase);
  void emitFinish(func::FuncOp phase);

private:
  /// The emitted values that belong to one row of a tile.
  struct RowContext {
    Value row, lse, delta;
    ScoreFunction::Values score, mask, weight, grad;
  };
  void keepFunctions();
  bool hasMask() {
    return !op.getMaskMod().empty() || shape.cols % plan.blockCols || shape.rows % plan.blockRows;
  }
  void emitHead(Head head, Value unit, Value chunk);
  void packRows(const Head &head, Value group);
  void packBlock(const Head &head, Value block);
  void emitTile(const Head &head, Value group, Value rowBlock, Value firstCol, Value isFree,
                Value unit);
  void emitScores(const Head &head, Value group, Value firstRow, Value firstCol, Value pass,
                  Value unit, bool masked);
  std::pair<Value, Value> emitVector(const Head &head, const RowContext &context, Value group,
                                     Value firstRow, Value firstCol, Value col, Value unit,
                                     bool masked);
  Matrix rowsOf(const Part &part, Value group, Value row, bool across);
  Matrix dqOf(const Head &head, Value group, Value chunk);
  Value scaleVector() { return b.number(op.getScale().convertToDouble(), plan.numbers.rowLanes); }

  BackwardPlan &plan;
  AttentionGradOp op;
  func::FuncOp kernel;
  Captures &captures;
  Units units;
  SmallVector<TileRange> ranges;
  std::optional<KeptFunction> score, mask, weight, grad;
  Matrix dqHead;
};

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONBACKWARD_H
