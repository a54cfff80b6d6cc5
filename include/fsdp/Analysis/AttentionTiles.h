//===- AttentionTiles.h - Rows and keys that a tile visits ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A forward kernel holds a tile of rows [q0, q1) and loops over tiles of keys. A backward kernel
// holds a tile of keys [k0, k1) and loops over tiles of rows. For each tile, this analysis derives
// two ranges from mask_mod. The loop of the kernel runs over the first range. In the second range,
// which is part of the first, the kernel need not evaluate the mask:
//
//          begin   fullBegin    fullEnd   end
//   keys ....|========|============|=======|....        mask_mod = q >= k && q - k < 256
//     skipped   masked   mask-free   masked              [max(0, q0 - 255), q1), free in
//                                                        [max(0, q1 - 256), q0 + 1)
//
// A tile can have several ranges, for example one for sink tokens and one for a window. The ranges
// of a tile are disjoint and in ascending order.
//
// Guarantees:
//  - The ranges of a tile of rows contain every key that mask_mod keeps for at least one of the
//    rows.
//  - For every row of the tile, mask_mod keeps every key in a mask-free subrange.
//
// mask_mod can read captured data, for example one number per row or per key. The analysis knows
// only the range of these numbers. If mask_mod contains a condition on such numbers, the mask-free
// subrange is therefore usually empty.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_ATTENTIONTILES_H
#define FSDP_ANALYSIS_ATTENTIONTILES_H

#include "fsdp/Analysis/TileExpr.h"
#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// The set of those indices of the score matrix (row, column) on which a value depends. The
/// operator `|` computes the union of two dependences.
enum class Dependence : unsigned { None = 0, Row = 1, Column = 2, Both = 3 };

inline Dependence operator|(Dependence a, Dependence b) {
  return static_cast<Dependence>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

/// Determines, for every value in one attention function (score_mod, mask_mod or score_grad), on
/// which indices the value depends. The dependence of a value determines how often a kernel
/// computes the value:
///   - None: computed once per batch and head
///   - Row: computed once per row, before the loop over keys
///   - Column: computed once per key
///   - Both: computed once per score, like the score itself and its cotangent
class RegionDependence {
public:
  explicit RegionDependence(Region &function);
  Dependence of(Value value) const { return classes.lookup(value); }
  /// Returns the union of the dependences that the operands of an op have.
  Dependence of(Operation *op) const;

private:
  DenseMap<Value, Dependence> classes;
};

/// A range of keys that a kernel visits for a tile of rows, or a range of rows that a kernel visits
/// for a tile of keys. The subrange [fullBegin, fullEnd) of [begin, end) is mask-free. The bounds
/// are trees (TileExpr.h) over the bounds of the tile, the batch, the head, and scalars of the
/// region.
struct TileRange {
  TileExpr begin, fullBegin, fullEnd, end;
};

/// Returns the values of the region that occur in bounds of `ranges`, each with its range.
DenseMap<Value, IntegerRange> findScalars(ArrayRef<TileRange> ranges);

enum class TileState { Masked, Partial, Unmasked };

/// A comparison that holds for every score that the mask keeps, such as `documents[q] ==
/// documents[k]`. The value `row` depends only on the row, and the value `column` only on the
/// column. At least one of the two values is computed from captured data. A kernel can skip a tile
/// if the ranges of the values `row` and `column` in the tile show that the comparison is false for
/// all scores of the tile.
struct SideComparison {
  arith::CmpIPredicate predicate;
  Value row, column; // values of mask_mod
};

class AttentionTiles {
public:
  explicit AttentionTiles(AttentionOp op);
  explicit AttentionTiles(AttentionGradOp op);

  /// Returns the ranges of keys that a kernel visits for a tile of rows. In the bounds of the
  /// ranges, the symbols `begin` and `end` stand for the bounds of the tile.
  ArrayRef<TileRange> getKeys() const { return keys; }
  /// Returns the ranges of rows that a kernel visits for a tile of keys.
  ArrayRef<TileRange> getRows() const { return rows; }

  /// Return the ranges of getKeys() and getRows() with bounds that count tiles of `size` keys or
  /// rows. No tile is in two of the ranges [begin, end). Each tile in [fullBegin, fullEnd) has
  /// exactly `size` keys or rows and needs no mask.
  SmallVector<TileRange> getKeyTiles(int64_t size) const { return inTiles(keys, extents[3], size); }
  SmallVector<TileRange> getRowTiles(int64_t size) const { return inTiles(rows, extents[2], size); }

  /// Returns true if mask_mod provably keeps every score.
  bool isUnmasked() const;
  /// Returns true if mask_mod provably keeps at least one key for every row. The maximum of a row
  /// is then never -inf, and the sum of a row is never 0.
  bool hasKeyInEveryRow() const;
  /// Returns true if mask_mod provably keeps no score.
  bool isFullyMasked() const;
  /// Returns true if bounds of ranges depend on captured data.
  bool readsData() const;

  /// Determines whether the rows [q0, q1) visit the keys [k0, k1). Returns Masked if the ranges of
  /// the rows contain none of these keys. Returns Unmasked if a mask-free subrange contains all
  /// these keys. Returns Partial in all other cases. `rowsOfTile` contains q0, q1, the batch, the
  /// head, and the function that evaluates scalars.
  TileState classify(const TileSymbols<int64_t> &rowsOfTile, int64_t k0, int64_t k1) const;

  ArrayRef<SideComparison> getSideComparisons() const { return comparisons; }

private:
  void analyse(Region &maskMod, ArrayRef<int64_t> extents);
  static SmallVector<TileRange> inTiles(ArrayRef<TileRange> ranges, int64_t extent, int64_t size);
  /// Calls `test` once for each row, with a tile that consists only of this row. Returns true if
  /// all calls return true. Returns nothing if the ranges depend on data, or if more than 2^20 rows
  /// would have to be tested.
  bool hasBound(llvm::function_ref<bool(TileExpr)> predicate) const;
  std::optional<bool> allRows(llvm::function_ref<bool(const TileSymbols<int64_t> &)> test) const;

  SmallVector<TileRange> keys, rows;
  SmallVector<SideComparison> comparisons;
  SmallVector<int64_t> extents; // extents of b, h, q, k
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_ATTENTIONTILES_H
