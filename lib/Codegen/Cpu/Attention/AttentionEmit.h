//===- AttentionEmit.h - Code shared by forward and backward ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONEMIT_H
#define FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONEMIT_H

#include "AttentionPlan.h"
#include "Codegen/Kernel/Lowering.h"
#include "fsdp/Codegen/CpuTarget.h"

namespace mlir::fsdp::attention {

/// A function of scores with the scratch arrays of its row values and column values.
struct KeptFunction {
  explicit KeptFunction(tile::ScoreFunction function) : function(std::move(function)) {}
  tile::ScoreFunction function;
  SmallVector<Part> rows, columns;
  tile::ScoreFunction::Values unit;
};

/// Code shared by the phases: pointers, score functions, loops over blocks.
class Emitter {
public:
  Emitter(tile::CpuTiles &b, Plan &plan) : b(b), plan(plan), shape(plan.shape) {}

  /// Sets the members `bindings`, `worker`, `shared`, `begin` and `end` to arguments of `phase`.
  void enter(func::FuncOp kernel, func::FuncOp phase);
  Pointer binding(Value tensor) const { return bindings.lookup(tensor); }
  Pointer scratch(const Part &part, Type type);
  tile::Matrix matrix(const Part &part, Type type) { return {scratch(part, type), part.stride, 1}; }
  /// Returns the rows of one head of a [batch, heads, rows, cols] tensor.
  tile::Matrix slab(Pointer tensor, Value batch, Value head, int64_t heads, int64_t rows,
                    int64_t cols);

  /// Creates the score function of a region and reserves scratch for its row and column values.
  KeptFunction keep(Region &region, unsigned scores, ValueRange captures);
  void emitUnit(KeptFunction &f, const Head &head);
  void emitRows(KeptFunction &f, const Head &head, Value firstRow, int64_t rows);
  void emitColumns(KeptFunction &f, const Head &head, Value firstCol);
  /// Return the precomputed values of row `row` of a tile (knownOfRow()), or `ofRow` together with
  /// the precomputed values of the vector of columns that begins at `col` (known()).
  tile::ScoreFunction::Values knownOfRow(const KeptFunction &f, Value row);
  tile::ScoreFunction::Values known(const KeptFunction &f, const tile::ScoreFunction::Values &ofRow,
                                    Value col);
  Value splatted(Value value) {
    return isa<VectorType>(value.getType()) ? value : b.splat(value, plan.numbers.rowLanes);
  }
  /// Emits body(block, isFree) for each block that `ranges` contains for the rows or columns
  /// [first, last) of a tile. `isFree` is true if no element of the block is masked. The scratch
  /// `part` holds the bounds of each range.
  void forBlocks(ArrayRef<TileRange> ranges, Part part, KeptFunction &mask, const Head &head,
                 Value first, Value last, function_ref<void(Value, Value)> body);
  /// Returns the mask of the lanes at `site` that are inside the matrix and that mask_mod keeps.
  /// Null means all lanes.
  Value keptLanes(KeptFunction &mask, const tile::ScoreFunction::Values &ofRow,
                  const tile::Site &site, Value col);
  /// Stores `rows` rows of `from`, times `factor`, to `tensor`, beginning at row `firstRow`.
  void storeRows(const tile::Matrix &from, Value factor, const Pointer &tensor,
                 const tile::Matrix &slab, Value firstRow, Value rows, int64_t cols);
  /// Returns the pointer to the argument in which the kernel returns `result`. The pointer's base
  /// is null if the kernel does not return `result`.
  Pointer destination(func::FuncOp kernel, Value result);

  tile::CpuTiles &b;
  Plan &plan;
  const Shape &shape;
  DenseMap<Value, Pointer> bindings;
  Pointer worker, shared;
  Value begin, end;
};

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONEMIT_H
