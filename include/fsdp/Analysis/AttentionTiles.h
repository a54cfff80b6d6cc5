//===- AttentionTiles.h - Rows and keys that a tile visits ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A forward kernel holds a tile of rows [q0, q1) and loops over tiles of keys. A backward kernel
// holds a tile of keys [k0, k1) and loops over tiles of rows. This analysis derives from mask_mod
// over which range the loop runs for a given tile, and in which subrange the kernel need not
// evaluate the mask:
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
// If mask_mod reads captured data per row or per key, the analysis knows only the range of the
// data. A condition on such data usually has an empty mask-free subrange.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_ATTENTIONTILES_H
#define FSDP_ANALYSIS_ATTENTIONTILES_H

#include "fsdp/Analysis/TileExpr.h"
#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

//===----------------------------------------------------------------------===//
// Dependence of values on row and column
//===----------------------------------------------------------------------===//

/// States on which indices of the score matrix (row, column) a value depends. The operator `|`
/// computes the union of two dependences.
enum class Dependence : unsigned { None = 0, Row = 1, Column = 2, Both = 3 };

inline Dependence operator|(Dependence a, Dependence b) {
  return static_cast<Dependence>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

/// Determines, for every value in one attention function (score_mod, mask_mod or score_grad), on
/// which indices the value depends. A kernel computes a value as often as its dependence requires:
///   - None: computed once per batch and head
///   - Row: computed once per row, before the loop over keys
///   - Column: computed once per key
///   - Both: computed once per score, like the score itself and its cotangent
class RegionDependence {
public:
  explicit RegionDependence(Region &function);
  Dependence of(Value value) const { return classes.lookup(value); }
  /// Returns the union of the dependences of the operands of an op.
  Dependence of(Operation *op) const;

private:
  DenseMap<Value, Dependence> classes;
};

//===----------------------------------------------------------------------===//
// Ranges that a tile visits
//===----------------------------------------------------------------------===//

/// A range of keys for a tile of rows, or of rows for a tile of keys, with begin <= fullBegin <=
/// fullEnd <= end. The bounds are trees (TileExpr.h) over the tile's begin and end, the batch, the
/// head, and scalars of the region.
struct TileRange {
  TileExpr begin, fullBegin, fullEnd, end;
};

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

  /// Returns the ranges of keys for a tile of rows [begin, end).
  ArrayRef<TileRange> getKeys() const { return keys; }
  /// Returns the ranges of rows for a tile of keys [begin, end).
  ArrayRef<TileRange> getRows() const { return rows; }

  /// Return the ranges in units of tiles of `size` elements. No tile is in two of the ranges
  /// [begin, end). Each tile in [fullBegin, fullEnd) has `size` elements and needs no mask.
  SmallVector<TileRange> getKeyTiles(int64_t size) const { return inTiles(keys, extents[3], size); }
  SmallVector<TileRange> getRowTiles(int64_t size) const { return inTiles(rows, extents[2], size); }

  /// Returns true if mask_mod provably keeps every score.
  bool isUnmasked() const;
  /// Returns true if mask_mod provably keeps at least one key for every row. The maximum of a row
  /// is then never -inf, and the sum of a row is never 0.
  bool hasKeyInEveryRow() const;
  /// Returns true if mask_mod provably keeps no score.
  bool isFullyMasked() const;

  /// Returns Masked if the ranges of keys of the rows [q0, q1) contain none of the keys [k0, k1),
  /// Unmasked if a mask-free subrange contains all these keys, and else Partial. `rowsOfTile`
  /// contains q0, q1, the batch, the head, and the function that evaluates scalars.
  TileState classify(const TileSymbols<int64_t> &rowsOfTile, int64_t k0, int64_t k1) const;

  ArrayRef<SideComparison> getSideComparisons() const { return comparisons; }

private:
  void analyse(Region &maskMod, ArrayRef<int64_t> extents);
  static SmallVector<TileRange> inTiles(ArrayRef<TileRange> ranges, int64_t extent, int64_t size);
  /// Calls `test` for each row, as a tile of one row, and returns whether all calls return true.
  /// Returns nothing if the ranges depend on data, or if more than 2^20 rows would have to be
  /// tested.
  std::optional<bool> allRows(llvm::function_ref<bool(const TileSymbols<int64_t> &)> test) const;

  SmallVector<TileRange> keys, rows;
  SmallVector<SideComparison> comparisons;
  SmallVector<int64_t> extents; // extents of b, h, q, k
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_ATTENTIONTILES_H
