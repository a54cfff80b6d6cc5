//===- SharedDraws.h - Random numbers for several lanes ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_FUNCTIONS_SHAREDDRAWS_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_FUNCTIONS_SHAREDDRAWS_H

#include "Codegen/Gpu/Attention/Sm80Attention.h"

namespace mlir::fsdp::attention {

/// Emits those random elements of a score function that lanes of a warp can compute for each other,
/// for the elements of a tile of scores.
class SharedDraws {
public:
  /// `layout` is the layout of a warp's scores, whose rows are keys or queries. `function` must
  /// outlive this object.
  SharedDraws(GpuBuilder &b, const FragmentFunction &function, tile::Layout layout,
              bool keysAreRows);

  /// Draws the numbers of a tile and returns words with a bit for each of the lane's elements.
  /// `row` and `col` are the row and the column of the lane's first element, which may not exist.
  /// There are `queries` queries. All lanes of the warp must execute this code.
  SmallVector<Value> emit(Value row, Value col, int64_t queries) const;
  /// Returns the values of the random ops for register `reg`. `words` are results of emit().
  FragmentFunction::Values at(ArrayRef<Value> words, int64_t reg) const;

private:
  int64_t wordsOfDraw() const { return llvm::divideCeil(layout.numRegisters(), wordBits); }
  SmallVector<Value> emitWords(RandomElementOp op, Value query, Value key, int64_t queries) const;
  Value keptOf(RandomElementOp op, const RandomPlace &place, Value query, Value key) const;
  Value exchange(Value word, unsigned distance, int64_t lanes) const;

  static constexpr int64_t wordBits = 32;
  GpuBuilder &b;
  const FragmentFunction &function;
  tile::Layout layout;
  bool keysAreRows;
  SmallVector<RandomElementOp> draws;
};

/// Returns true if lanes can share the blocks of a random op of a function whose index of the key
/// is `k`. If they do, a lane executes `sharedDrawIssue` instructions for an element.
bool canShareDraw(RandomElementOp op, Value k, const RegionDependence &dependences);
inline constexpr double sharedDrawIssue = 14;

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_FUNCTIONS_SHAREDDRAWS_H
