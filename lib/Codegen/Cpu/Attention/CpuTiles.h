//===- CpuTiles.h - Fragments and tiles on CPU vectors ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the class that emits code on tiles for CPUs. Fragments are vectors. Tiles are in a
// worker's scratch, which is small enough for the caches.
//
// A product is computed in steps along the reduced dimension k. A step is one value of k, or a pair
// of values of k. How the elements of a matrix x are packed into steps depends on the arithmetic:
//
//              along a row (k = column)      across rows (k = row)
//   Fma        x[r][k], widened              x[k][c], widened
//   Bf16Dot    pairs of x[r][k], unchanged   pairs x[2j][c] x[2j+1][c]
//   Tiles      as Bf16Dot, but k is a multiple of 32
//   Bf16Pairs  x[r][k^1], widened            x[k^1][c], widened
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_ATTENTION_CPUTILES_H
#define FSDP_LIB_CODEGEN_CPU_ATTENTION_CPUTILES_H

#include "Codegen/Cpu/Amx/AmxTiles.h"
#include "Codegen/Kernel/CodeBuilder.h"
#include "Codegen/Kernel/Fragment.h"
#include "fsdp/Codegen/CpuTarget.h"

namespace mlir::fsdp::tile {

/// The ways in which products are computed and summed, as described at Arithmetic in GemmPlan.h.
enum class Arithmetic { Fma, Bf16Dot, Bf16Pairs, Tiles };

/// Types and vector lengths of a kernel.
struct Numbers {
  Numbers(Type element, const CpuTarget &target);

  Type element; ///< element type of the operands
  Type wide;    ///< type of sums and of elementwise operations: f32 or f64
  Arithmetic arithmetic = Arithmetic::Fma;
  bool emulatesTiles = false;  ///< true if loops replace the AMX instructions of Arithmetic::Tiles
  bool convertsToBf16 = false; ///< true if the CPU has vcvtneps2bf16

  /// Number of lanes of a register (`lanes`), and number of lanes of the vectors in which rows are
  /// summed (`rowLanes`). The vectors for sums of rows have 512 bits on every CPU.
  int64_t lanes, rowLanes;
  /// Maximum number of registers that hold sums of a product: in total (`sums`), and for one row of
  /// a fragment (`sumsPerRow`).
  int64_t sums, sumsPerRow;

  /// Number of k values per step.
  int64_t perStep() const { return packsPairs() ? 2 : 1; }
  /// Returns true if a step is a pair of bf16.
  bool packsPairs() const {
    return arithmetic == Arithmetic::Bf16Dot || arithmetic == Arithmetic::Tiles;
  }
  /// Returns the number of rows (or columns) that a block of `extent` rows (or columns) has in
  /// memory. With Arithmetic::Tiles, this is `extent` rounded up to whole steps of tile registers.
  /// Otherwise, it is `extent`.
  int64_t wholeSteps(int64_t extent) const {
    return arithmetic == Arithmetic::Tiles ? llvm::alignTo(extent, 2 * amx::tileSize) : extent;
  }
  /// Returns the number of rows of a product with `rows` rows, including padding to whole tiles.
  int64_t wholeRows(int64_t rows) const {
    return arithmetic == Arithmetic::Tiles ? llvm::alignTo(rows, amx::tileSize) : rows;
  }
  Type stepType() const;
  int64_t stepBytes() const { return wide.isF64() ? 8 : 4; }
  /// Returns the number of steps for `k` elements along k.
  int64_t steps(int64_t k) const;
};

/// A matrix in memory. Its element (r, c) is at place + r · rowStride + c · colStride.
struct Matrix {
  Pointer place;
  int64_t rowStride, colStride = 1;
};

/// The size of a matrix: `rows` is known at run time, and `cols` is known at compile time.
struct Extents {
  Value rows;
  int64_t cols;
};

class CpuTiles : public CodeBuilder {
public:
  CpuTiles(Location loc, MLIRContext *context, const Numbers &numbers)
      : CodeBuilder(loc, context), numbers(numbers) {}

  using CodeBuilder::load;
  using CodeBuilder::store;

  const Numbers numbers;

  //===--- Scalars and vectors of the wide type ----------------------------===//
  /// Creates a constant of the wide type, as a vector if `lanes` > 0.
  Value number(double value, int64_t lanes = 0);
  /// Emits code that computes 2^x for x <= 1. Results below 2^-125 (f64: 2^-1021) become 0.
  Value exp2(Value x);
  Value broadcastLoad(const Pointer &place, int64_t lanes) {
    return splat(load(place.type, place), lanes);
  }
  /// Returns lane 0 of a vector.
  Value first(Value vector);

  //===--- Fragments -------------------------------------------------------===//
  Fragment fill(Layout layout, Value vector);
  Fragment load(Layout layout, const Matrix &from, Value mask = nullptr);
  void store(const Fragment &fragment, const Matrix &to);
  Fragment map(const Fragment &x, function_ref<Value(Value, int64_t)> body);
  /// For each row, returns a vector whose lanes all hold the largest element of the row.
  SmallVector<Value> rowMax(const Fragment &x);
  /// For each row, returns a vector of partial sums: lane l is the sum of lane l of all registers
  /// of the row.
  SmallVector<Value> rowSum(const Fragment &x);
  /// Returns a vector whose lanes all hold the sum of the lanes of `vector`. Adds the upper half of
  /// the lanes to the lower half until one lane is left.
  Value sumOfLanes(Value vector);
  /// Returns sums(r, c) + Σ over `steps` of a(r, k) · b(k, c).
  Fragment gemm(Fragment sums, const Matrix &a, const Matrix &b, int64_t steps);

  //===--- Tiles -----------------------------------------------------------===//
  enum class Sums { Zero, Kept };
  // Emits code that computes c = s + a · b, fragment by fragment. If `start` is Zero, s is 0.
  // Otherwise s is the old c. If `factor` is given, each row of the old c is first multiplied by
  // factor(row), which must be a vector whose lanes are equal. The code computes
  // numbers.wholeRows(rows) rows. For all of these rows, the memory of `a` must be readable and the
  // memory of `c` must be writable. With Arithmetic::Tiles, the steps of a row of `a` must be
  // contiguous.
  void gemm(const Matrix &c, const Matrix &a, const Matrix &b, int64_t rows, int64_t cols,
            int64_t steps, Sums start, function_ref<Value(Value)> factor = nullptr);
  void fillTile(const Matrix &tile, int64_t rows, int64_t cols, Value scalar);
  /// Emits `for (i = from; i < to; ++i) { fetch(i + 1); body(i); }`. If `fetch` is null, the loop
  /// contains only body(i).
  void pipeline(Value from, Value to, function_ref<void(Value)> fetch,
                function_ref<void(Value)> body);
  /// Prefetches `bytes` bytes that begin at `place`.
  void prefetchTile(const Pointer &place, int64_t bytes);

  //===--- Packing ---------------------------------------------------------===//
  /// Packs `rows` rows of a matrix with `cols` columns into steps along each row. Elements
  /// outside of `extents` are 0.
  void packAlong(const Matrix &from, Extents extents, const Matrix &to, int64_t rows, int64_t cols);
  /// Packs a matrix as packAlong() does, but k is the row index. The elements of a step are
  /// therefore in one column (see the table at the top of this file).
  void packAcross(const Matrix &from, Extents extents, const Matrix &to, int64_t rows,
                  int64_t cols);
  /// Packs a matrix into steps along each row, and stores the steps transposed: step s of row r
  /// becomes element (s, r) of `to`. `rows` is a multiple of numbers.lanes.
  void packTransposed(const Matrix &from, Extents extents, const Matrix &to, int64_t rows,
                      int64_t cols);
  /// Emits code that transposes a matrix of pairs: to(r, s) = from(s, r). `to` has `rows` rows of
  /// `steps` steps; `rows` and `steps` are multiples of 16.
  void transposePairs(const Matrix &from, const Matrix &to, int64_t rows, int64_t steps);
  /// Stores a vector that contains values (of type `wide`) of one row, beginning at column `col`.
  /// In `to`, the values form steps along the row.
  void storeAlong(Value vector, const Matrix &to, Value row, Value col);
  /// Packs a part of row `row` (`vector`) and the same part of row `row` + 1 (`next`) across rows:
  /// stores pairs of one element of each. `row` must be even. With Arithmetic::Fma, stores each
  /// vector separately; `next` may be null.
  void storeAcross(Value vector, Value next, const Matrix &to, Value row, Value col);

  Pointer at(const Matrix &matrix, Value row, Value col);

private:
  Value loadWide(const Matrix &from, Value row, Value col, Extents extents, int64_t lanes);
  Value loadSteps(const Matrix &from, Value row, Value col, Extents extents);
  Value toHalf(Value vector);
  Value multiplyAdd(Value a, Value b, Value sum);
  void gemmOfTiles(const Matrix &c, const Matrix &a, const Matrix &b, int64_t rows, int64_t cols,
                   int64_t steps, Sums start, function_ref<Value(Value)> factor);
  Value foldLanes(Value vector, function_ref<Value(Value, Value)> combine);
  int64_t sumsPerRowOf(int64_t cols, int64_t &panels) const;
};

} // namespace mlir::fsdp::tile

#endif // FSDP_LIB_CODEGEN_CPU_ATTENTION_CPUTILES_H
