//===- CpuTiles.cpp - Fragments and their products on CPU vectors --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A product of tiles is computed fragment by fragment, with the sums of a fragment in registers:
//
//                   b   | b0 | b1 |          step k: load a row of b, then broadcast
//      a  a(0, k)       | s  | s  |          a(r, k) for each row r, and multiply-add
//         a(1, k)       | s  | s  |          it with each register of the row of b
//
// Each sum adds its products in the order of k, whatever shape the fragments have. The bits
// therefore depend neither on the number of registers nor on the number of lanes. The sum or the
// maximum of a row is computed in vectors whose length is the same on every CPU. At the end, the
// upper half of the lanes is combined with the lower half, again and again, until one lane is left.
//
//===----------------------------------------------------------------------===//

#include "CpuTiles.h"
#include "Codegen/Kernel/CacheLine.h"
#include "Codegen/Math/MathPatterns.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::tile;

Numbers::Numbers(Type element, const CpuTarget &target) : element(element) {
  MLIRContext *context = element.getContext();
  wide = element.isF64() ? element : Type(Float32Type::get(context));
  if (element.isBF16())
    arithmetic = target.usesTiles()                 ? Arithmetic::Tiles
                 : target.bf16 == Bf16Products::Dot ? Arithmetic::Bf16Dot
                                                    : Arithmetic::Bf16Pairs;
  emulatesTiles = target.bf16 == Bf16Products::TileLoops;
  convertsToBf16 = StringRef(target.features).contains("+avx512bf16");
  lanes = target.vectorBits / wide.getIntOrFloatBitWidth();
  rowLanes = 512 / wide.getIntOrFloatBitWidth();
  sums = target.hasAvx512() ? 24 : 12;
  sumsPerRow = target.hasAvx512() ? 4 : 2;
}

Type Numbers::stepType() const {
  return packsPairs() ? Type(IntegerType::get(wide.getContext(), 32)) : wide;
}

int64_t Numbers::steps(int64_t k) const {
  switch (arithmetic) {
  case Arithmetic::Fma:
    return k;
  case Arithmetic::Bf16Dot:
    return llvm::divideCeil(k, 2);
  case Arithmetic::Bf16Pairs:
    return llvm::alignTo(k, 2);
  case Arithmetic::Tiles:
    return llvm::alignTo(llvm::divideCeil(k, 2), amx::tileSize);
  }
  llvm_unreachable("unknown arithmetic");
}

Value CpuTiles::number(double value, int64_t lanes) {
  TypedAttr attr = getFloatAttr(numbers.wide, value);
  if (lanes)
    attr = DenseElementsAttr::get(VectorType::get({lanes}, numbers.wide), attr);
  return arith::ConstantOp::create(*this, loc, attr);
}

Value CpuTiles::exp2(Value x) {
  if (numbers.wide.isF64())
    return math::Exp2Op::create(*this, loc, x);
  return expandSmallExp2(*this, loc, x);
}

Value CpuTiles::first(Value vector) {
  return vector::ExtractOp::create(*this, loc, vector, ArrayRef<int64_t>{0});
}

Value CpuTiles::foldLanes(Value vector, function_ref<Value(Value, Value)> combine) {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  for (int64_t half = lanes / 2; half; half /= 2) {
    SmallVector<int64_t> mask;
    for (int64_t lane = 0; lane < lanes; ++lane)
      mask.push_back(lane ^ half);
    vector = combine(vector, shuffle(vector, vector, mask));
  }
  return vector;
}

Value CpuTiles::sumOfLanes(Value vector) {
  return foldLanes(vector, [&](Value a, Value b) { return addf(a, b); });
}

Pointer CpuTiles::at(const Matrix &matrix, Value row, Value col) {
  return shift(matrix.place, add(mul(row, matrix.rowStride), mul(col, matrix.colStride)));
}

Fragment CpuTiles::fill(Layout layout, Value vector) {
  return {layout, SmallVector<Value>(layout.numRegisters(), vector)};
}

static Matrix placeOf(CpuTiles &b, const Matrix &matrix, const Layout &layout, int64_t reg) {
  auto [row, col] = layout.place(reg);
  Matrix moved = matrix;
  moved.place = b.shift(matrix.place, b.constant(row * matrix.rowStride + col));
  return moved;
}

Fragment CpuTiles::load(Layout layout, const Matrix &from, Value mask) {
  Fragment result{layout, {}};
  auto type = VectorType::get({layout.numLanes()}, from.place.type);
  for (int64_t reg = 0; reg < layout.numRegisters(); ++reg)
    result.registers.push_back(load(type, placeOf(*this, from, layout, reg).place, mask));
  return result;
}

void CpuTiles::store(const Fragment &fragment, const Matrix &to) {
  for (auto [reg, value] : llvm::enumerate(fragment.registers))
    store(value, placeOf(*this, to, fragment.layout, reg).place);
}

Fragment CpuTiles::map(const Fragment &x, function_ref<Value(Value, int64_t)> body) {
  Fragment result{x.layout, {}};
  for (auto [reg, value] : llvm::enumerate(x.registers))
    result.registers.push_back(body(value, reg));
  return result;
}

SmallVector<Value> CpuTiles::rowMax(const Fragment &x) {
  SmallVector<Value> rows(x.layout.numRows());
  for (auto [reg, value] : llvm::enumerate(x.registers)) {
    Value &row = rows[x.layout.place(reg).first];
    row = row ? larger(row, value) : value;
  }
  for (Value &row : rows)
    row = foldLanes(row, [&](Value a, Value b) { return larger(a, b); });
  return rows;
}

SmallVector<Value> CpuTiles::rowSum(const Fragment &x) {
  SmallVector<Value> rows(x.layout.numRows());
  for (auto [reg, value] : llvm::enumerate(x.registers)) {
    Value &row = rows[x.layout.place(reg).first];
    row = row ? addf(row, value) : value;
  }
  return rows;
}

Value CpuTiles::multiplyAdd(Value a, Value b, Value sum) {
  if (numbers.arithmetic != Arithmetic::Bf16Dot)
    return fma(a, b, sum);
  auto pairs = VectorType::get({2 * numbers.lanes}, getBF16Type());
  a = vector::BitCastOp::create(*this, loc, pairs, a);
  b = vector::BitCastOp::create(*this, loc, pairs, b);
  return LLVM::CallIntrinsicOp::create(*this, loc, sum.getType(),
                                       getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
                                       ValueRange{sum, a, b})
      .getResult(0);
}

Fragment CpuTiles::gemm(Fragment sums, const Matrix &a, const Matrix &b, int64_t steps) {
  constexpr int64_t unroll = 2;
  Layout layout = sums.layout;
  auto stepRow = Layout::rowVectors(1, layout.numCols(), layout.numLanes());
  auto step = [&](Value k, SmallVector<Value> &values) {
    Matrix from = b;
    from.place = shift(b.place, mul(k, b.rowStride));
    Fragment right = load(stepRow, from);
    Pointer left = shift(a.place, mul(k, a.colStride));
    for (int64_t r = 0; r < layout.numRows(); ++r) {
      Value scalar = broadcastLoad(shift(left, constant(r * a.rowStride)), layout.numLanes());
      for (auto [v, register_] : llvm::enumerate(right.registers)) {
        Value &sum = values[r * layout.registersPerRow() + v];
        sum = multiplyAdd(scalar, register_, sum);
      }
    }
  };
  int64_t whole = steps / unroll * unroll;
  SmallVector<Value> values = sums.registers;
  if (whole > 0) {
    auto op =
        scf::ForOp::create(*this, loc, constant(0), constant(whole), constant(unroll), values);
    InsertionGuard guard(*this);
    setInsertionPointToStart(op.getBody());
    values = llvm::to_vector_of<Value>(op.getRegionIterArgs());
    for (int64_t i = 0; i < unroll; ++i)
      step(add(op.getInductionVar(), i), values);
    scf::YieldOp::create(*this, loc, values);
    values = llvm::to_vector_of<Value>(op.getResults());
  }
  for (int64_t k = whole; k < steps; ++k)
    step(constant(k), values);
  return {layout, values};
}

/// Returns the number of registers per row of a fragment, for a matrix of `cols` columns. Divides
/// the columns into panels of about the same width, and sets `panels` to the number of panels.
int64_t CpuTiles::sumsPerRowOf(int64_t cols, int64_t &panels) const {
  int64_t registers = llvm::divideCeil(cols, numbers.lanes);
  panels = llvm::divideCeil(registers, numbers.sumsPerRow);
  return llvm::divideCeil(registers, panels);
}

/// Divides `rows` rows into as few fragments as the registers of the sums allow, with `registers`
/// registers per row. Calls body(from, to, size) for the rows from `from` to `to` - 1, which form
/// fragments of `size` rows. The sizes differ by at most one row, so there are at most two calls.
static void forFragments(const Numbers &numbers, int64_t rows, int64_t registers,
                         function_ref<void(int64_t, int64_t, int64_t)> body) {
  int64_t most = std::min<int64_t>(numbers.sums / registers, 16);
  int64_t fragments = llvm::divideCeil(rows, most), size = rows / fragments;
  int64_t larger = rows % fragments * (size + 1);
  if (larger > 0)
    body(0, larger, size + 1);
  body(larger, rows, size);
}

void CpuTiles::gemm(const Matrix &c, const Matrix &a, const Matrix &b, int64_t rows, int64_t cols,
                    int64_t steps, Sums start, function_ref<Value(Value)> factor) {
  if (numbers.arithmetic == Arithmetic::Tiles)
    return gemmOfTiles(c, a, b, rows, cols, steps, start, factor);
  int64_t panels, perRow = sumsPerRowOf(cols, panels),
                  registers = llvm::divideCeil(cols, numbers.lanes);
  auto emitFragment = [&](Value row, Value col, Layout layout) {
    Matrix left{at(a, row, constant(0)), a.rowStride, a.colStride};
    Matrix right{at(b, constant(0), col), b.rowStride, b.colStride};
    Matrix result{at(c, row, col), c.rowStride, c.colStride};
    Fragment sums =
        start == Sums::Zero ? fill(layout, number(0, layout.numLanes())) : load(layout, result);
    if (factor)
      sums = map(sums, [&](Value value, int64_t reg) {
        return mulf(value, factor(add(row, layout.place(reg).first)));
      });
    store(gemm(sums, left, right, steps), result);
  };
  auto panelsOf = [&](Value from, Value to, int64_t count) {
    loop(from, to, count * numbers.lanes, [&](Value col) {
      forFragments(numbers, rows, count, [&](int64_t first, int64_t end, int64_t size) {
        auto layout = Layout::rowVectors(size, count * numbers.lanes, numbers.lanes);
        loop(constant(first), constant(end), size,
             [&](Value row) { emitFragment(row, col, layout); });
      });
    });
  };
  int64_t whole = registers / perRow * perRow;
  panelsOf(constant(0), constant(whole * numbers.lanes), perRow);
  if (whole < registers)
    panelsOf(constant(whole * numbers.lanes), constant(registers * numbers.lanes),
             registers - whole);
}

void CpuTiles::gemmOfTiles(const Matrix &c, const Matrix &a, const Matrix &b, int64_t rows,
                           int64_t cols, int64_t steps, Sums start,
                           function_ref<Value(Value)> factor) {
  assert(a.colStride == 1 && b.colStride == 1 && c.colStride == 1 && "rows are contiguous");
  int64_t size = amx::tileSize, rowTiles = llvm::divideCeil(rows, size),
          colTiles = llvm::divideCeil(cols, size);
  TypedAttr zero = getF32FloatAttr(0);
  if (factor)
    loop(constant(0), constant(rowTiles * size), 1, [&](Value row) {
      Value ofRow = factor(row);
      for (int64_t col = 0; col < colTiles * size; col += size) {
        Pointer place = at(c, row, constant(col));
        store(mulf(load(ofRow.getType(), place), ofRow), place);
      }
    });
  auto block = [&](Value row, Value col, int64_t rowCount, int64_t colCount) {
    amx::Product product;
    product.rowTiles = rowCount;
    product.colTiles = colCount;
    product.left = at(a, row, constant(0));
    product.leftRow = a.rowStride;
    product.leftTile = size * a.rowStride;
    product.leftStep = 1;
    product.right = at(b, constant(0), col);
    product.rightStep = b.rowStride;
    product.sums = at(c, row, col);
    product.sumRow = constant(c.rowStride);
    product.emulated = numbers.emulatesTiles;
    amx::emitProduct(*this, product, constant(steps), boolean(start == Sums::Kept), zero);
  };
  auto blocksOfRows = [&](Value col, int64_t colCount) {
    loop(constant(0), constant(rowTiles / 2 * 2 * size), 2 * size,
         [&](Value row) { block(row, col, 2, colCount); });
    if (rowTiles % 2)
      block(constant((rowTiles - 1) * size), col, 1, colCount);
  };
  loop(constant(0), constant(colTiles / 2 * 2 * size), 2 * size,
       [&](Value col) { blocksOfRows(col, 2); });
  if (colTiles % 2)
    blocksOfRows(constant((colTiles - 1) * size), 1);
}

void CpuTiles::fillTile(const Matrix &tile, int64_t rows, int64_t cols, Value scalar) {
  Value vector = splat(scalar, numbers.rowLanes);
  loop(constant(0), constant(rows), 1, [&](Value row) {
    loop(constant(0), constant(cols), numbers.rowLanes,
         [&](Value col) { store(vector, at(tile, row, col)); });
  });
}

void CpuTiles::prefetchTile(const Pointer &place, int64_t bytes) {
  int64_t step = lineBytes * 8 / place.type.getIntOrFloatBitWidth();
  loop(constant(0), constant(bytes / lineBytes * step), step,
       [&](Value i) { prefetch(shift(place, i)); });
}

void CpuTiles::pipeline(Value from, Value to, function_ref<void(Value)> fetch,
                        function_ref<void(Value)> body) {
  loop(from, to, 1, [&](Value i) {
    if (fetch)
      fetch(add(i, 1));
    body(i);
  });
}
