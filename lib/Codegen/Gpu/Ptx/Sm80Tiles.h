//===- Sm80Tiles.h - Fragments and tiles of a GPU from sm_80 on -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The sm_80 side of the tile builder: fragments are what mma.sync leaves in the registers
// of a warp, fast memory is shared memory, filled by cp.async and read by ldmatrix.
//
//   numbers     step of k   a product is                      its factors are
//   f16, bf16   16          m16n8k16, sums in f32             as they are
//   f32         8           three of m16n8k8 in tf32          high + low, 11 bits each
//
// Rows of a tile are an odd number of 16 bytes apart, so that eight rows of ldmatrix lie in
// different banks, and every address is that of a lane plus a constant. Private to the stage.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_PTX_SM80TILES_H
#define FSDP_LIB_CODEGEN_GPU_PTX_SM80TILES_H

#include "Codegen/Kernel/Fragment.h"
#include "GpuBuilder.h"

namespace mlir::fsdp::tile {

/// Rows in shared memory, `pitch` bytes apart.
struct SharedTile {
  Value base;
  int64_t pitch;
};

/// Rows of a matrix in global memory, one after another, at `place`.
struct GlobalRows {
  Pointer place;
  int64_t rows, cols;
};

class Sm80Tiles : public GpuBuilder {
public:
  Sm80Tiles(Location loc, MLIRContext *context, int64_t threads, Type element)
      : GpuBuilder(loc, context, threads), element(element) {}

  const Type element; ///< bf16, f16 or f32

  bool isSplit() const { return element.isF32(); }
  static int64_t bytesOf(Type element) { return element.getIntOrFloatBitWidth() / 8; }
  int64_t elementBytes() const { return bytesOf(element); }
  int64_t stepOfK() const { return isSplit() ? 8 : 16; }
  /// Columns that a tile has for `cols` of a matrix; and the bytes between its rows.
  static int64_t paddedCols(int64_t cols) { return llvm::alignTo(cols, 16); }
  static int64_t pitchOf(Type element, int64_t cols) {
    return paddedCols(cols) * bytesOf(element) + 16;
  }

  //===--- Copies ----------------------------------------------------------===// / Begins to fetch
  // rows [first, first + rows) by all threads; what does not exist becomes 0. `whole`: all of them
  // exist.
  void copyAsync(const SharedTile &to, const GlobalRows &from, Value first, int64_t rows,
                 bool whole);
  /// Elements [first, first + count) of 4 bytes, one after another; those from `extent` on
  /// become 0.
  void copyWordsAsync(Value to, const Pointer &from, Value first, int64_t count, int64_t extent);
  /// What has been fetched since the last commit is one group.
  void commit();
  /// Waits for all of this thread's groups but the latest `pending`.
  void waitForCopies(int64_t pending);

  //===--- Fragments -------------------------------------------------------===//
  Fragment fill(Layout layout, Value value) {
    return {layout, SmallVector<Value>(layout.numRegisters(), value)};
  }

  //===--- Products --------------------------------------------------------===//
  /// sums(r, c) + Σ over k of a(r, k) · b(c, k): rows of both along k.
  Fragment multiplyRows(Fragment sums, const SharedTile &a, const SharedTile &b, int64_t k);
  /// sums(r, c) + Σ over k of a(r, k) · b(k, c).
  Fragment multiplyAcross(Fragment sums, const Fragment &a, const SharedTile &b);

  //===--- Pieces of products ----------------------------------------------===//
  /// What a lane holds of one factor of a product; `low` is empty where numbers are not split.
  struct Factor {
    SmallVector<Value> high, low;
  };
  /// Four pieces of ldmatrix, of which the lane names a row.
  SmallVector<Value> loadMatrices(Value place, bool transposed);
  /// Of words as ldmatrix gives them.
  Factor toFactor(ArrayRef<Value> words);
  /// Adds the product of 16 rows and 8 columns.
  void multiplyAdd(MutableArrayRef<Value> sums, const Factor &a, const Factor &b);

private:
  void copyUnit(const SharedTile &to, const GlobalRows &from, Value row, Value unit, Value first,
                int64_t bytes, bool checksRow, bool checksCol);
  Value laneOfRows(const SharedTile &tile);
  Value laneOfCols(const SharedTile &tile);
  std::pair<Value, Value> split(Value number);
  Factor fromSums(const Fragment &sums, int64_t rowPiece, int64_t step);
  std::array<Factor, 2> loadAcross(const SharedTile &tile, int64_t k, int64_t col);
  SmallVector<Value> mma(ArrayRef<Value> a, ArrayRef<Value> b, ArrayRef<Value> sums);
};

} // namespace mlir::fsdp::tile

#endif // FSDP_LIB_CODEGEN_GPU_PTX_SM80TILES_H
