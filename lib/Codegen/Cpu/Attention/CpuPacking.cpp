//===- CpuPacking.cpp - Packs matrices for products -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   along rows    a0 a1 a2 a3        across rows    a0 a1 ..      transposed   a0 b0 c0 ..
//                 b0 b1 b2 b3                       b0 b1 ..                   a1 b1 c1 ..
//
// For bf16 dot products, a step is a pair of values of k. The packed elements are then pairs: along
// rows a0a1 a2a3 .., across rows a0b0 a1b1 .., and transposed a0a1 b0b1 ... Elements outside the
// matrix are packed as zero. Squares of lanes × lanes elements are transposed in registers
// (Codegen/Kernel/TransposedVectors.cpp). If heads lie in the tensor of a projection, consecutive
// rows of a head are far apart, and processors do not prefetch them. Therefore the code prefetches
// the row that is packed `rowsAhead` rows later.
//
//===----------------------------------------------------------------------===//

#include "CpuTiles.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::tile;

/// Number of rows between the row that is packed and the row that is prefetched at the same time.
/// With 512-bit vectors, packTransposed() packs blocks of 16 rows and thus prefetches the next
/// block.
static constexpr int64_t rowsAhead = 16;

/// Returns how many columns of the matrix exist from position (row, col) to the end of the row, or
/// 0 if the row does not exist.
static Value remaining(CpuTiles &b, Value row, Value col, Extents extents) {
  Value count = b.sub(b.constant(extents.cols), col);
  return b.select(b.isLess(row, extents.rows), count, b.constant(0));
}

Value CpuTiles::loadWide(const Matrix &from, Value row, Value col, Extents extents, int64_t lanes) {
  auto type = VectorType::get({lanes}, from.place.type);
  Value mask = maskBelow(lanes, remaining(*this, row, col, extents));
  return convertFloat(load(type, at(from, row, col), mask), numbers.wide);
}

/// Loads numbers.lanes steps along a row.
Value CpuTiles::loadSteps(const Matrix &from, Value row, Value col, Extents extents) {
  if (!numbers.packsPairs())
    return loadWide(from, row, col, extents, numbers.lanes);
  int64_t lanes = 2 * numbers.lanes;
  Value mask = maskBelow(lanes, remaining(*this, row, col, extents));
  Value pairs = load(VectorType::get({lanes}, from.place.type), at(from, row, col), mask);
  return vector::BitCastOp::create(*this, loc, VectorType::get({numbers.lanes}, numbers.stepType()),
                                   pairs);
}

/// Rounds the elements of `vector` to bf16. If a step is a single value (not a pair), converts the
/// result back to the wide type.
Value CpuTiles::toHalf(Value vector) {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  auto half = VectorType::get({lanes}, getBF16Type());
  if (!numbers.packsPairs())
    return convertFloat(convertFloat(vector, getBF16Type()), numbers.wide);
  if (!numbers.convertsToBf16)
    return convertFloat(vector, getBF16Type());
  assert(lanes == 16 && "one register");
  return LLVM::CallIntrinsicOp::create(*this, loc, half,
                                       getStringAttr("llvm.x86.avx512bf16.cvtneps2bf16.512"),
                                       ValueRange{vector})
      .getResult(0);
}

void CpuTiles::storeAlong(Value vector, const Matrix &to, Value row, Value col) {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  switch (numbers.arithmetic) {
  case Arithmetic::Fma:
    return store(vector, at(to, row, col));
  case Arithmetic::Tiles:
  case Arithmetic::Bf16Dot: {
    Pointer pairs = at(to, row, div(col, 2));
    return store(toHalf(vector), {address(pairs), getBF16Type(), constant(0)});
  }
  case Arithmetic::Bf16Pairs: {
    SmallVector<int64_t> swapped;
    for (int64_t lane = 0; lane < lanes; ++lane)
      swapped.push_back(lane ^ 1);
    Value rounded = toHalf(vector);
    return store(shuffle(rounded, rounded, swapped), at(to, row, col));
  }
  }
}

void CpuTiles::storeAcross(Value vector, Value next, const Matrix &to, Value row, Value col) {
  switch (numbers.arithmetic) {
  case Arithmetic::Fma:
    store(vector, at(to, row, col));
    if (next)
      store(next, at(to, add(row, 1), col));
    return;
  case Arithmetic::Tiles:
  case Arithmetic::Bf16Dot: {
    int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
    SmallVector<int64_t> mask;
    for (int64_t lane = 0; lane < lanes; ++lane)
      mask.append({lane, lanes + lane});
    Value pairs = shuffle(toHalf(vector), toHalf(next), mask);
    pairs =
        vector::BitCastOp::create(*this, loc, VectorType::get({lanes}, numbers.stepType()), pairs);
    return store(pairs, at(to, div(row, 2), col));
  }
  case Arithmetic::Bf16Pairs:
    store(toHalf(next), at(to, row, col));
    store(toHalf(vector), at(to, add(row, 1), col));
  }
}

void CpuTiles::packAlong(const Matrix &from, Extents extents, const Matrix &to, int64_t rows,
                         int64_t cols) {
  int64_t lanes = numbers.rowLanes;
  loop(constant(0), constant(rows), 1, [&](Value row) {
    loop(constant(0), constant(cols), lanes, [&](Value col) {
      storeAlong(loadWide(from, row, col, extents, lanes), to, row, col);
      prefetch(at(from, add(row, rowsAhead), col));
    });
  });
}

void CpuTiles::packAcross(const Matrix &from, Extents extents, const Matrix &to, int64_t rows,
                          int64_t cols) {
  int64_t lanes = numbers.rowLanes;
  loop(constant(0), constant(rows), 2, [&](Value row) {
    loop(constant(0), constant(cols), lanes, [&](Value col) {
      SmallVector<Value> vectors;
      for (int64_t r = 0; r < 2; ++r) {
        vectors.push_back(loadWide(from, add(row, r), col, extents, lanes));
        prefetch(at(from, add(row, r + rowsAhead), col));
      }
      storeAcross(vectors[0], vectors[1], to, row, col);
    });
  });
}

void CpuTiles::packTransposed(const Matrix &from, Extents extents, const Matrix &to, int64_t rows,
                              int64_t cols) {
  int64_t lanes = numbers.lanes;
  loop(constant(0), constant(rows), lanes, [&](Value row) {
    loop(constant(0), constant(cols), lanes * numbers.perStep(), [&](Value col) {
      SmallVector<Value> vectors;
      for (int64_t r = 0; r < lanes; ++r) {
        vectors.push_back(loadSteps(from, add(row, r), col, extents));
        prefetch(at(from, add(row, r + rowsAhead), col));
      }
      Value step = div(col, numbers.perStep());
      for (auto [k, vector] : llvm::enumerate(transpose(vectors))) {
        int64_t place = numbers.arithmetic == Arithmetic::Bf16Pairs ? k ^ 1 : k;
        store(vector, at(to, add(step, place), row));
      }
    });
  });
}

void CpuTiles::transposePairs(const Matrix &from, const Matrix &to, int64_t rows, int64_t steps) {
  int64_t size = amx::tileSize;
  auto type = VectorType::get({size}, numbers.stepType());
  loop(constant(0), constant(rows), size, [&](Value row) {
    loop(constant(0), constant(steps), size, [&](Value step) {
      SmallVector<Value> vectors;
      for (int64_t s = 0; s < size; ++s)
        vectors.push_back(load(type, at(from, add(step, s), row)));
      for (auto [r, vector] : llvm::enumerate(transpose(vectors)))
        store(vector, at(to, add(row, r), step));
    });
  });
}
