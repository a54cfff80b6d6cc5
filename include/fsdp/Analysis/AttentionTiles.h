//===- AttentionTiles.h - What a tiled attention visits ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A kernel holds a tile of rows [q0, q1) and loops over tiles of keys (forward), or
// holds keys [k0, k1) and loops over rows (backward). From mask_mod, this says over
// which of them it has to loop, and where in between the mask need not be looked at:
//
//          begin   fullBegin    fullEnd   end
//   keys ....|========|============|=======|....        mask_mod = q >= k && q - k < 256
//     skipped   masked   mask-free   masked              [max(0, q0 - 255), q1), free in
//                                                        [max(0, q1 - 256), q0 + 1)
//
// There can be several such ranges (sink tokens and a window); they are disjoint and
// ascend. No key that mask_mod keeps for a row of the tile is outside of them; every
// key in a mask-free part is kept for every row of the tile. Nothing else is promised:
// where the mask depends on captured data per row or key, the whole range is masked.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_ATTENTIONTILES_H
#define FSDP_ANALYSIS_ATTENTIONTILES_H

#include "fsdp/Analysis/TileExpr.h"
#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

//===----------------------------------------------------------------------===//
// What depends on what
//===----------------------------------------------------------------------===//

/// Of which sides of the score matrix a value is a function; `|` joins two.
enum class Dependence : unsigned { None = 0, Row = 1, Column = 2, Both = 3 };

inline Dependence operator|(Dependence a, Dependence b) {
  return static_cast<Dependence>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

/// The dependence of every value of one function of attention (score_mod, mask_mod or
/// score_grad). None: once per batch and head; Row: once per row, before the loop over
/// keys; Column: once per key. The score and its cotangent are Both.
class RegionDependence {
public:
  explicit RegionDependence(Region &function);
  Dependence of(Value value) const { return classes.lookup(value); }
  /// Of an op: that of what it reads.
  Dependence of(Operation *op) const;

private:
  DenseMap<Value, Dependence> classes;
};

//===----------------------------------------------------------------------===//
// What to visit
//===----------------------------------------------------------------------===//

/// A loop over one side, for a tile of the other: begin <= fullBegin <= fullEnd <= end.
/// Trees over begin and end of the tile, batch, head, and scalars of the region.
struct TileRange {
  TileExpr begin, fullBegin, fullEnd, end;
};

enum class TileState { Masked, Partial, Unmasked };

/// A comparison that every kept score fulfils, of a value that depends on the row alone with one
/// that depends on the column alone, at least one of them read from captured data: `documents[q] ==
/// documents[k]`. A tile in which it fails for the extremes of both sides can be skipped.
struct SideComparison {
  arith::CmpIPredicate predicate;
  Value row, column; // of mask_mod
};

class AttentionTiles {
public:
  explicit AttentionTiles(AttentionOp op);
  explicit AttentionTiles(AttentionGradOp op);

  /// Keys for rows [begin, end).
  ArrayRef<TileRange> getKeys() const { return keys; }
  /// Rows for keys [begin, end).
  ArrayRef<TileRange> getRows() const { return rows; }

  /// The same, counted in tiles of `size` from 0: the loop [begin, end) visits each tile once;
  /// those of [fullBegin, fullEnd) are whole and mask-free. A last tile of fewer
  /// than `size` elements is never in the mask-free part.
  SmallVector<TileRange> getKeyTiles(int64_t size) const { return inTiles(keys, extents[3], size); }
  SmallVector<TileRange> getRowTiles(int64_t size) const { return inTiles(rows, extents[2], size); }

  /// Nothing is masked.
  bool isUnmasked() const;
  /// Every row keeps a key, so that no maximum is -inf and no sum 0. False when that is not clear.
  bool hasKeyInEveryRow() const;
  /// No row keeps a key. False when that is not clear.
  bool isFullyMasked() const;

  /// Rows [q0, q1) × keys [k0, k1) by the ranges over keys, for given batch and head. Scalars: as
  /// in TileSymbols.
  TileState classify(const TileSymbols<int64_t> &rowsOfTile, int64_t k0, int64_t k1) const;

  ArrayRef<SideComparison> getSideComparisons() const { return comparisons; }

private:
  void analyse(Region &maskMod, ArrayRef<int64_t> extents);
  static SmallVector<TileRange> inTiles(ArrayRef<TileRange> ranges, int64_t extent, int64_t size);
  /// Whether every row, as a tile of its own, passes; nothing when that cannot be computed here.
  std::optional<bool> allRows(llvm::function_ref<bool(const TileSymbols<int64_t> &)> test) const;

  SmallVector<TileRange> keys, rows;
  SmallVector<SideComparison> comparisons;
  SmallVector<int64_t> extents; // of b, h, q, k
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_ATTENTIONTILES_H
