//===- CpuTiles.h - Fragments and tiles on CPU vectors ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The CPU's side of the tile builder: fragments are vectors, fast memory is the
// scratch of a worker, which stays in the caches. Private to the stage.
//
// A product takes steps along k. How a matrix lies so that it can be stepped through
// is its packing, and what a step holds depends on the arithmetic:
//
//              along a row (k = column)      across rows (k = row)
//   Fma        x[r][k], widened              x[k][c], widened
//   Bf16Dot    x[r][k], as it is: pairs      pairs x[2j][c] x[2j+1][c]
//   Bf16Pairs  x[r][k^1], widened            x[k^1][c], widened
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_ATTENTION_CPUTILES_H
#define FSDP_LIB_CODEGEN_CPU_ATTENTION_CPUTILES_H

#include "Codegen/Kernel/CodeBuilder.h"
#include "Codegen/Kernel/Fragment.h"
#include "fsdp/Codegen/CpuTarget.h"

namespace mlir::fsdp::tile {

/// How products are formed and summed, as in GemmPlan.h.
enum class Arithmetic { Fma, Bf16Dot, Bf16Pairs };

/// What the numbers of a kernel look like in registers and tiles.
struct Numbers {
  Numbers(Type element, const CpuTarget &target);

  Type element; ///< in the operands
  Type wide;    ///< of sums and elementwise work: f32, or f64
  Arithmetic arithmetic = Arithmetic::Fma;
  /// Lanes of a register; and of the vectors that rows are summed in, on every CPU the same.
  int64_t lanes, rowLanes;
  /// Registers for the sums of a product, and how many of a row at most.
  int64_t sums, sumsPerRow;

  /// Values of k in a step, the type of one, and its bytes.
  int64_t perStep() const { return arithmetic == Arithmetic::Bf16Dot ? 2 : 1; }
  Type stepType() const;
  int64_t stepBytes() const { return wide.isF64() ? 8 : 4; }
  /// Steps of `k` values.
  int64_t steps(int64_t k) const;
};

/// A matrix in memory: element (r, c) at place + r · rowStride + c · colStride.
struct Matrix {
  Pointer place;
  int64_t rowStride, colStride = 1;
};

/// Rows and columns that exist, of a matrix in a tensor.
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
  Value number(double value, int64_t lanes = 0);
  /// 2^x, x <= 1; 0 below 2^-125 (f64: 2^-1021).
  Value exp2(Value x);
  Value broadcastLoad(const Pointer &place, int64_t lanes) {
    return splat(load(place.type, place), lanes);
  }
  /// Lane 0.
  Value first(Value vector);

  //===--- Fragments -------------------------------------------------------===//
  Fragment fill(Layout layout, Value vector);
  Fragment load(Layout layout, const Matrix &from, Value mask = nullptr);
  void store(const Fragment &fragment, const Matrix &to);
  Fragment map(const Fragment &x, function_ref<Value(Value, int64_t)> body);
  /// Per row: a vector of which all lanes hold the largest element.
  SmallVector<Value> rowMax(const Fragment &x);
  /// Per row: a vector of partial sums, register by register.
  SmallVector<Value> rowSum(const Fragment &x);
  /// All lanes hold the sum of a vector, by halves.
  Value sumOfLanes(Value vector);
  /// sums(r, c) + Σ over `steps` of a(r, k) · b(k, c).
  Fragment gemm(Fragment sums, const Matrix &a, const Matrix &b, int64_t steps);

  //===--- Tiles -----------------------------------------------------------===//
  using Start = function_ref<Fragment(Layout, Value row, Value col)>;
  /// c = start + a · b, fragment by fragment. Rows are rounded up to rowsOf(rows, cols):
  /// a must be readable, and c writable so far.
  void gemm(const Matrix &c, const Matrix &a, const Matrix &b, int64_t rows, int64_t cols,
            int64_t steps, Start start);
  static int64_t rowsOf(const Numbers &numbers, int64_t rows, int64_t cols);
  void fillTile(const Matrix &tile, int64_t rows, int64_t cols, Value scalar);
  /// for (i = from; i < to; ++i) body(i), and beside each what fetches for the next.
  void pipeline(Value from, Value to, function_ref<void(Value)> fetch,
                function_ref<void(Value)> body);
  /// Asks for `bytes` from a place on.
  void prefetchTile(const Pointer &place, int64_t bytes);

  //===--- Packing ---------------------------------------------------------===//
  /// `rows` rows of a matrix of `cols` columns to steps along each row; what does not exist is 0.
  void packAlong(const Matrix &from, Extents extents, const Matrix &to, int64_t rows, int64_t cols);
  /// To steps across rows.
  void packAcross(const Matrix &from, Extents extents, const Matrix &to, int64_t rows,
                  int64_t cols);
  /// Steps along a row become rows: to(step, row). `rows` is a multiple of lanes.
  void packTransposed(const Matrix &from, Extents extents, const Matrix &to, int64_t rows,
                      int64_t cols);
  /// One vector of a row (wide values), columns `col` on, to steps along the row.
  void storeAlong(Value vector, const Matrix &to, Value row, Value col);
  /// Vectors of rows `row` and `row` + 1 (an even one and the next) to steps across rows. With Fma
  /// the two are stored apart, and the second may be null.
  void storeAcross(Value vector, Value next, const Matrix &to, Value row, Value col);

  Pointer at(const Matrix &matrix, Value row, Value col);

private:
  Value loadWide(const Matrix &from, Value row, Value col, Extents extents, int64_t lanes);
  Value loadSteps(const Matrix &from, Value row, Value col, Extents extents);
  Value toHalf(Value vector);
  Value multiplyAdd(Value a, Value b, Value sum);
  SmallVector<Value> transpose(SmallVector<Value> rows);
  Value foldLanes(Value vector, function_ref<Value(Value, Value)> combine);
  int64_t sumsPerRowOf(int64_t cols, int64_t &panels) const;
};

} // namespace mlir::fsdp::tile

#endif // FSDP_LIB_CODEGEN_CPU_ATTENTION_CPUTILES_H
