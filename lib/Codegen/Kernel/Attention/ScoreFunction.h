//===- ScoreFunction.h - A region of attention on fragments -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// score_mod, mask_mod, weight_mod and score_grad are functions of one element (b, h, q, k). Values
// that depend only on some of these arguments are computed outside the loops over the other
// arguments:
//
//   none      b, h          once per head
//   row       b, h, q       once per row of a tile, stored in a buffer of the tile
//   column    b, h, k       once per column of a tile, stored in a buffer of the tile
//   both      q and k, or the score: once per element
//
// Integers whose ranges fit 32 bits are computed in 32 bits, so that a vector of indices has as
// many bits as a vector of f32 scores.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_ATTENTION_SCOREFUNCTION_H
#define FSDP_LIB_CODEGEN_KERNEL_ATTENTION_SCOREFUNCTION_H

#include "Codegen/Kernel/CodeBuilder.h"
#include "fsdp/Analysis/AttentionTiles.h"
#include "fsdp/Analysis/IntegerRange.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/Philox.h"
#include "mlir/IR/Region.h"

namespace mlir::fsdp::tile {

/// A captured tensor and its location in memory.
struct Captured {
  Pointer place;
  RankedTensorType type;
};

/// The position in the score matrix of the elements that one register of a fragment holds.
struct Site {
  Value b, h, q;    ///< 64-bit scalars
  Value column;     ///< column of lane 0, a 64-bit scalar
  Value lastColumn; ///< last column of the matrix; null if no lane is beyond it
  /// Values of the region's leading arguments, which precede b: (s), () or (g, s).
  SmallVector<Value> scores;
  int64_t lanes = 0; ///< number of lanes; 0 if the site is the single element at `column`
};

/// Returns the value x if the random element is x + k, where x is a multiple of 4 and does not
/// depend on the key k. Four keys from a multiple of 4 on then use the four words of one block.
/// Otherwise returns null.
Value getSharedBase(RandomElementOp op, Value k, const RegionDependence &dependences);

class ScoreFunction {
public:
  using Values = DenseMap<Value, Value>;

  /// `extents` contains the numbers of batches, heads, rows and columns, which bound b, h, q and k.
  /// The region has `scores` arguments before the arguments b, h, q and k.
  ScoreFunction(Region &region, unsigned scores, ArrayRef<int64_t> extents,
                ArrayRef<Captured> captures);

  bool empty() const { return region.empty(); }
  Region &getRegion() const { return region; }
  Dependence dependenceOf(Value value) const { return dependences.of(value); }
  /// Returns the argument k of the region, the index of the key.
  Value keyArgument() const { return region.front().getArgument(scores + 3); }
  Value sharedBase(RandomElementOp op) const {
    return getSharedBase(op, keyArgument(), dependences);
  }
  /// Returns the value that the region yields.
  Value result() const { return region.front().getTerminator()->getOperand(0); }

  /// Returns those values of the region that are computed in advance and stored in a buffer of the
  /// tile. If `dependence` is Row, returns the values that depend on the row but not on the column.
  /// Otherwise returns the values that depend on the column but not on the row.
  ArrayRef<Value> staged(Dependence dependence) const {
    return dependence == Dependence::Row ? rows : columns;
  }
  /// Returns the type that a value of the region has in the generated code.
  Type typeOf(Value value) const;
  /// Emits the values that depend only on b and h, and adds them to `known`.
  void emitUnit(CodeBuilder &b, const Site &site, Values &known) const;
  /// Emits the code that computes `value` at a site, and returns the emitted value. `known` maps
  /// values of the region to values that were emitted for this site before. The function adds the
  /// values that it emits to `known`. Emitted values that do not depend on the lane are scalars.
  Value emit(CodeBuilder &b, Value value, const Site &site, Values &known) const;
  /// Emits the row-major position of the element at `indices` in a captured tensor of type `type`,
  /// as an integer of 32 or 64 bits.
  Value emitPosition(CodeBuilder &b, RankedTensorType type, ValueRange indices, const Site &site,
                     Values &known) const;

  /// Emits the seed, the step and the sample of a random op, as 64-bit integers.
  RandomPlace emitPlace(CodeBuilder &b, RandomElementOp op, const Site &site, Values &known) const;

private:
  std::optional<IntegerRange> rangeOf(Operation *op) const;
  std::optional<IntegerRange> rangeOf(Value value) const;
  void findRanges();
  void stage();
  bool isCheap(Value value) const;
  bool isNarrow(Value value) const;
  bool computesNarrow(Operation *op) const;
  Value emitArgument(CodeBuilder &b, BlockArgument argument, const Site &site) const;
  Value emitCast(CodeBuilder &b, Operation *op, Value operand, const Site &site) const;
  Value emitExtract(CodeBuilder &b, Operation *op, const Site &site, Values &known) const;
  Value emitRandom(CodeBuilder &b, RandomElementOp op, const Site &site, Values &known) const;
  void emitOp(CodeBuilder &b, Operation *op, const Site &site, Values &known) const;
  Value widened(CodeBuilder &b, Value emitted, Value original) const;
  Value emitIndex(CodeBuilder &b, Value index, int64_t stride, const Site &site, Values &known,
                  bool narrow) const;

  Region &region;
  unsigned scores;
  SmallVector<int64_t> extents;
  SmallVector<Captured> captures;
  RegionDependence dependences;
  DenseMap<Value, IntegerRange> ranges;
  SmallVector<Value> units, rows, columns;
};

} // namespace mlir::fsdp::tile

#endif // FSDP_LIB_CODEGEN_KERNEL_ATTENTION_SCOREFUNCTION_H
