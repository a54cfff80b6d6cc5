//===- AttentionEmit.h - Code shared by forward and backward ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONEMIT_H
#define FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONEMIT_H

#include "AttentionPlan.h"
#include "Codegen/Kernel/Attention/AttentionKernel.h"
#include "Codegen/Kernel/Lowering.h"
#include "fsdp/Codegen/CpuTarget.h"

namespace mlir::fsdp::attention {

/// A score function with arrays in scratch. `rows` holds the values of the function that depend
/// only on the row, and `columns` holds the values that depend only on the column.
struct KeptFunction {
  explicit KeptFunction(tile::ScoreFunction function) : function(std::move(function)) {}
  tile::ScoreFunction function;
  SmallVector<Part> rows, columns;
  tile::ScoreFunction::Values unit;
};

/// A tensor of shape [batch, heads, rows, cols] in memory. `tensor` points to the tensor in which
/// it lies.
struct Heads {
  Pointer tensor;
  HeadLayout layout;
};

/// Emits code that all phases need: pointers, score functions, and loops over blocks.
class Emitter {
public:
  Emitter(tile::CpuTiles &b, Plan &plan) : b(b), plan(plan), shape(plan.shape) {}

  /// Sets the members `bindings`, `worker`, `shared`, `begin` and `end` from arguments of `phase`.
  void enter(func::FuncOp kernel, func::FuncOp phase);
  Pointer binding(Value tensor) const { return bindings.lookup(tensor); }
  Pointer scratch(const Part &part, Type type);
  tile::Matrix matrix(const Part &part, Type type) { return {scratch(part, type), part.stride, 1}; }
  /// Returns the place in memory of `heads`, an operand or result of attention with the shape
  /// [batch, heads, rows, cols]. The base of the pointer is null if `heads` is a result that the
  /// kernel does not return.
  Heads place(func::FuncOp kernel, Value heads);
  /// Returns head `head` of sample `batch` as a matrix of rows and columns.
  tile::Matrix headOf(const Heads &heads, Value batch, Value head);

  /// Creates the score function of a region and reserves scratch for its row and column values.
  KeptFunction keep(Region &region, unsigned scores, ValueRange captures);
  void emitUnit(KeptFunction &f, const Head &head);
  void emitRows(KeptFunction &f, const Head &head, Value firstRow, int64_t rows);
  void emitColumns(KeptFunction &f, const Head &head, Value firstCol);
  /// Return precomputed values of a score function. knownOfRow() returns the values of row `row` of
  /// a tile. known() returns `ofRow` and the values of the columns in the vector that begins at
  /// `col`.
  tile::ScoreFunction::Values knownOfRow(const KeptFunction &f, Value row);
  tile::ScoreFunction::Values known(const KeptFunction &f, const tile::ScoreFunction::Values &ofRow,
                                    Value col);
  Value splatted(Value value) {
    return isa<VectorType>(value.getType()) ? value : b.splat(value, plan.numbers.rowLanes);
  }
  /// Emits a loop over blocks that runs body(block, isFree). `ranges` defines the blocks for the
  /// rows or columns [first, last) of a tile. `isFree` is true if no element of the block is
  /// masked. The code stores the bounds of the ranges in the scratch `part`.
  void forBlocks(ArrayRef<TileRange> ranges, Part part, KeptFunction &mask, const Head &head,
                 Value first, Value last, function_ref<void(Value, Value)> body);
  /// Returns the mask of the lanes at `site` that are inside the matrix and that mask_mod does not
  /// mask. Returns null if the mask would contain all lanes.
  Value keptLanes(KeptFunction &mask, const tile::ScoreFunction::Values &ofRow,
                  const tile::Site &site, Value col);
  /// Multiplies `rows` rows of `from` by `factor`. Stores the products to the rows of `to` that
  /// begin at row `firstRow`.
  void storeRows(const tile::Matrix &from, Value factor, const tile::Matrix &to, Value firstRow,
                 Value rows, int64_t cols);
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
