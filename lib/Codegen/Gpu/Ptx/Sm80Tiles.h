//===- Sm80Tiles.h - Fragments and tiles for sm_80 and later ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the class that emits code on tiles for sm_80. A fragment is an accumulator of mma.sync.
// Tiles are in shared memory, where cp.async writes them and ldmatrix reads them.
//
//   elements    step of k   instructions of a product         factors
//   f16, bf16   16          m16n8k16, sums in f32             unchanged
//   f32, exact  8           three of m16n8k8 in tf32          high + low, 11 bits each
//   f32, tf32   8           m16n8k8 in tf32                   rounded to 11 bits
//
// The distance between rows of a tile is an odd multiple of 16 bytes. Therefore the eight rows of
// an ldmatrix are in different banks, and every address is an address of the lane plus a constant.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_PTX_SM80TILES_H
#define FSDP_LIB_CODEGEN_GPU_PTX_SM80TILES_H

#include "Codegen/Kernel/Fragment.h"
#include "GpuBuilder.h"
#include "fsdp/Options/Options.h"

namespace mlir::fsdp::tile {

/// A tile: rows in shared memory, whose distance is `pitch` bytes.
struct SharedTile {
  Value base;
  int64_t pitch;
};

/// Contiguous rows of a matrix in global memory, starting at `place`.
struct GlobalRows {
  Pointer place;
  int64_t rows, cols;
  int64_t stride; ///< distance between rows, in elements
};

class Sm80Tiles : public GpuBuilder {
public:
  Sm80Tiles(Location loc, MLIRContext *context, int64_t threads, Type element,
            F32Products f32Products)
      : GpuBuilder(loc, context, threads), element(element), f32Products(f32Products) {}

  const Type element; ///< bf16, f16 or f32
  const F32Products f32Products;

  bool isWide() const { return element.isF32(); }
  bool isSplit() const { return isWide() && f32Products == F32Products::Exact; }
  static int64_t bytesOf(Type element) { return element.getIntOrFloatBitWidth() / 8; }
  int64_t elementBytes() const { return bytesOf(element); }
  int64_t stepOfK() const { return isWide() ? 8 : 16; }
  /// Return the number of columns of a tile that holds `cols` columns of a matrix, and the distance
  /// between the rows of this tile in bytes.
  static int64_t paddedCols(int64_t cols) { return llvm::alignTo(cols, 16); }
  static int64_t pitchOf(Type element, int64_t cols) {
    return paddedCols(cols) * bytesOf(element) + 16;
  }

  //===--- Copies ----------------------------------------------------------===//

  /// Starts to copy rows [first, first + rows) with all threads. Elements outside `from` become 0.
  /// `whole` must be true only if all these rows exist.
  void copyAsync(const SharedTile &to, const GlobalRows &from, Value first, int64_t rows,
                 bool whole);
  /// Starts to copy the 4-byte elements [first, first + count). Elements at or after `extent`
  /// become 0.
  void copyWordsAsync(Value to, const Pointer &from, Value first, int64_t count, int64_t extent);
  /// Ends a group of copies. The group has the copies that this thread started since the last
  /// commit.
  void commit();
  /// Waits until all groups of this thread except the latest `pending` groups are complete.
  void waitForCopies(int64_t pending);

  //===--- Fragments -------------------------------------------------------===//
  Fragment fill(Layout layout, Value value) {
    return {layout, SmallVector<Value>(layout.numRegisters(), value)};
  }

  //===--- Products --------------------------------------------------------===//
  /// Returns sums(r, c) + Σ over k of a(r, k) · b(c, k). The rows of both tiles extend along k.
  Fragment multiplyRows(Fragment sums, const SharedTile &a, const SharedTile &b, int64_t k);
  /// Returns sums(r, c) + Σ over k of a(r, k) · b(k, c).
  Fragment multiplyAcross(Fragment sums, const Fragment &a, const SharedTile &b);

  //===--- Pieces of products ----------------------------------------------===//
  /// The words that a lane holds of one factor of a product. If f32 values are split in two parts,
  /// `high` holds the first parts, and `low` holds the second parts. Otherwise `high` holds the
  /// values (of f32: rounded to TF32), and `low` is empty.
  struct Factor {
    SmallVector<Value> high, low;
  };
  /// Converts words from ldmatrix to a factor.
  Factor toFactor(ArrayRef<Value> words);
  /// Adds the product of 16 rows and 8 columns to `sums`.
  void multiplyAdd(MutableArrayRef<Value> sums, const Factor &a, const Factor &b);

private:
  void copyUnit(const SharedTile &to, const GlobalRows &from, Value row, Value unit, Value first,
                int64_t bytes, bool checksRow, bool checksCol);
  Value laneOfRows(const SharedTile &tile);
  Value laneOfCols(const SharedTile &tile);
  Factor fromSums(const Fragment &sums, int64_t rowPiece, int64_t step);
  std::array<Factor, 2> loadAcross(const SharedTile &tile, int64_t k, int64_t col);
  SmallVector<Value> mma(ArrayRef<Value> a, ArrayRef<Value> b, ArrayRef<Value> sums);
};

} // namespace mlir::fsdp::tile

#endif // FSDP_LIB_CODEGEN_GPU_PTX_SM80TILES_H
