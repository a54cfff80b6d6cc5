//===- Sm80Tiles.cpp - Products of tiles by mma.sync ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// ldmatrix reads four matrices of 8 rows x 16 bytes. Lane l provides the address of row l%8 of
// matrix l/8, and receives word l%4 of row l/4 of each matrix. The matrices are numbered as
// follows:
//
//   rows (factor a)   0 2      columns of b    0 1     b by rows of k   0 2
//                     1 3      (its rows)      2 3     (.trans)         1 3
//
// With this numbering, the received words are the operands of mma. The accumulator of a product can
// be the left factor of the next product, without exchange of data between lanes. For this purpose,
// two tiles of 8 columns are rounded to 16 bits, and form a step of 16 values of k. In tf32, one
// tile of 8 columns is a step. A lane then holds columns 2 (l%4) and 2 (l%4) + 1, although mma
// expects columns l%4 and l%4 + 4. The result is nevertheless correct if the rows of the right
// factor are permuted in the same way, because a sum over k may have any order.
//
// An f32 value x is split into high = tf32(x) and low = tf32(x - high). A product of f32 values is
// computed as low·high + high·low + high·high, with an error of about 2^-22 · |a|·|b|. With
// F32Products::TF32 it is high·high alone. tf32() is cvt.rna: ties are rounded away from zero.
//
//===----------------------------------------------------------------------===//

#include "Sm80Tiles.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::tile;

/// Returns the address of the row that this lane provides to ldmatrix, in a block of 16 rows x 32
/// bytes. The matrices of the block are numbered first downwards, then to the right.
Value Sm80Tiles::laneOfRows(const SharedTile &tile) {
  Value row = rem(lane(), 16), half = div(lane(), 16);
  return shiftBytes(tile.base, add(mul(row, tile.pitch), mul(half, 16)));
}

/// Returns the address of the row that this lane provides to ldmatrix, as laneOfRows() does. Here,
/// the matrices are numbered first to the right, then downwards.
Value Sm80Tiles::laneOfCols(const SharedTile &tile) {
  Value row = add(rem(lane(), 8), mul(div(lane(), 16), 8)), half = rem(div(lane(), 8), 2);
  return shiftBytes(tile.base, add(mul(row, tile.pitch), mul(half, 16)));
}

Sm80Tiles::Factor Sm80Tiles::toFactor(ArrayRef<Value> words) {
  Factor factor;
  if (!isWide()) {
    factor.high.assign(words.begin(), words.end());
    return factor;
  }
  for (Value word : words) {
    Value number = arith::BitcastOp::create(*this, loc, getF32Type(), word);
    if (!isSplit()) {
      factor.high.push_back(roundToTF32(number));
      continue;
    }
    auto [high, low] = splitToTF32(number);
    factor.high.push_back(high);
    factor.low.push_back(low);
  }
  return factor;
}

/// Returns the left factor for step `step` of k and the 16 rows that begin at row 16 · rowPiece.
Sm80Tiles::Factor Sm80Tiles::fromSums(const Fragment &sums, int64_t rowPiece, int64_t step) {
  int64_t perRow = sums.layout.numCols() / 8;
  auto piece = [&](int64_t number) {
    return ArrayRef(sums.registers).slice((rowPiece * perRow + number) * 4, 4);
  };
  if (isWide()) {
    ArrayRef<Value> x = piece(step);
    SmallVector<Value> words;
    for (int64_t i : {0, 2, 1, 3})
      words.push_back(arith::BitcastOp::create(*this, loc, getI32Type(), x[i]));
    return toFactor(words);
  }
  Factor factor;
  for (int64_t i : {0, 1})
    for (int64_t half : {0, 2})
      factor.high.push_back(
          pack(piece(2 * step + i)[half], piece(2 * step + i)[half + 1], element));
  return factor;
}

/// Loads the right factors of one step of k and 16 columns from a tile whose rows extend along k.
std::array<Sm80Tiles::Factor, 2> Sm80Tiles::loadAcross(const SharedTile &tile, int64_t k,
                                                       int64_t col) {
  int64_t offset = k * tile.pitch + col * elementBytes();
  if (!isWide()) {
    SmallVector<Value> words =
        loadMatrices(shiftBytes(laneOfRows(tile), offset), /*transposed=*/true);
    return {toFactor(ArrayRef(words).take_front(2)), toFactor(ArrayRef(words).drop_front(2))};
  }
  Value place = shiftBytes(tile.base, add(mul(colOfLane(), tile.pitch), mul(rowOfLane(), 4)));
  auto half = [&](int64_t number) {
    SmallVector<Value> words;
    for (int64_t row : {0, 1})
      words.push_back(LLVM::LoadOp::create(
          *this, loc, getI32Type(), shiftBytes(place, offset + row * tile.pitch + number * 32)));
    return toFactor(words);
  };
  Factor left = half(0);
  return {left, half(1)};
}

SmallVector<Value> Sm80Tiles::mma(ArrayRef<Value> a, ArrayRef<Value> b, ArrayRef<Value> sums) {
  auto type = LLVM::LLVMStructType::getLiteral(getContext(), SmallVector<Type>(4, getF32Type()));
  auto numbers = isWide()           ? NVVM::MMATypes::tf32
                 : element.isBF16() ? NVVM::MMATypes::bf16
                                    : NVVM::MMATypes::f16;
  auto words = [&](ArrayRef<Value> x) {
    return llvm::map_to_vector(x, [&](Value word) -> Value {
      if (!element.isF16())
        return word;
      return LLVM::BitcastOp::create(*this, loc, VectorType::get({2}, element), word);
    });
  };
  SmallVector<Value> left = words(a), right = words(b);
  Value product =
      NVVM::MmaOp::create(*this, loc, type, left, right, sums, ArrayRef<int64_t>{16, 8, stepOfK()},
                          std::nullopt, std::nullopt, std::array{numbers, numbers},
                          std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  SmallVector<Value> result;
  for (int64_t i = 0; i < 4; ++i)
    result.push_back(LLVM::ExtractValueOp::create(*this, loc, product, i));
  return result;
}

void Sm80Tiles::multiplyAdd(MutableArrayRef<Value> sums, const Factor &a, const Factor &b) {
  SmallVector<Value> x(sums);
  if (isSplit()) {
    x = mma(a.low, b.high, x);
    x = mma(a.high, b.low, x);
  }
  llvm::copy(mma(a.high, b.high, x), sums.begin());
}

Fragment Sm80Tiles::multiplyRows(Fragment sums, const SharedTile &a, const SharedTile &b,
                                 int64_t k) {
  int64_t rowPieces = sums.layout.numRows() / 16, perRow = sums.layout.numCols() / 8;
  Value left = laneOfRows(a), right = laneOfCols(b);
  for (int64_t at = 0; at < k; at += stepOfK()) {
    SmallVector<Factor> rows;
    for (int64_t t = 0; t < rowPieces; ++t)
      rows.push_back(
          toFactor(loadMatrices(shiftBytes(left, 16 * t * a.pitch + at * elementBytes()), false)));
    for (int64_t n = 0; n < perRow; n += 2) {
      SmallVector<Value> words =
          loadMatrices(shiftBytes(right, 8 * n * b.pitch + at * elementBytes()), false);
      for (int64_t half : {0, 1}) {
        Factor cols = toFactor(ArrayRef(words).slice(2 * half, 2));
        for (int64_t t = 0; t < rowPieces; ++t)
          multiplyAdd(MutableArrayRef(sums.registers).slice((t * perRow + n + half) * 4, 4),
                      rows[t], cols);
      }
    }
  }
  return sums;
}

Fragment Sm80Tiles::multiplyAcross(Fragment sums, const Fragment &a, const SharedTile &b) {
  int64_t rowPieces = sums.layout.numRows() / 16, perRow = sums.layout.numCols() / 8;
  for (int64_t step = 0; step * stepOfK() < a.layout.numCols(); ++step) {
    SmallVector<Factor> rows;
    for (int64_t t = 0; t < rowPieces; ++t)
      rows.push_back(fromSums(a, t, step));
    for (int64_t n = 0; n < perRow; n += 2) {
      std::array<Factor, 2> cols = loadAcross(b, step * stepOfK(), 8 * n);
      for (int64_t half : {0, 1})
        for (int64_t t = 0; t < rowPieces; ++t)
          multiplyAdd(MutableArrayRef(sums.registers).slice((t * perRow + n + half) * 4, 4),
                      rows[t], cols[half]);
    }
  }
  return sums;
}

void Sm80Tiles::commit() { NVVM::CpAsyncCommitGroupOp::create(*this, loc); }
void Sm80Tiles::waitForCopies(int64_t pending) {
  NVVM::CpAsyncWaitGroupOp::create(*this, loc, pending);
}

/// Copies chunk `unit` of row `row` of the tile. A chunk has `bytes` bytes.
void Sm80Tiles::copyUnit(const SharedTile &to, const GlobalRows &from, Value row, Value unit,
                         Value first, int64_t bytes, bool checksRow, bool checksCol) {
  int64_t rowBytes = from.stride * elementBytes();
  bool isWide = from.rows * rowBytes > std::numeric_limits<int32_t>::max();
  Value number = add(first, row), inRow = mul(unit, bytes), exists;
  Value source =
      isWide ? add(mul(to64(number), rowBytes), to64(inRow)) : add(mul(number, rowBytes), inRow);
  if (checksRow)
    exists = isLower(number, from.rows);
  if (checksCol) {
    Value isColumn = isLower(unit, from.cols * elementBytes() / bytes);
    exists = exists ? both(exists, isColumn) : isColumn;
  }
  if (exists)
    source = select(exists, source, zero(source.getType()));
  Value place = shiftBytes(address(from.place), isWide ? source : to64(source));
  Value target = shiftBytes(to.base, add(mul(row, to.pitch), mul(unit, bytes)));
  // cp.async copies at least 4 bytes.
  if (bytes < 4) {
    Value word = LLVM::LoadOp::create(*this, loc, getI16Type(), place);
    LLVM::StoreOp::create(*this, loc, exists ? select(exists, word, zero(getI16Type())) : word,
                          target);
    return;
  }
  auto cache = bytes == 16 ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
  Value size = exists ? select(exists, i32(bytes), i32(0)) : Value();
  NVVM::CpAsyncOp::create(*this, loc, target, place, bytes, cache, size);
}

void Sm80Tiles::copyAsync(const SharedTile &to, const GlobalRows &from, Value first, int64_t rows,
                          bool whole) {
  int64_t rowBytes = from.cols * elementBytes(), padded = paddedCols(from.cols) * elementBytes();
  int64_t distances = rowBytes | (from.stride * elementBytes());
  int64_t bytes = std::min<int64_t>(16, distances & -distances), units = padded / bytes,
          total = rows * units;
  bool checksCol = padded != rowBytes;
  auto one = [&](Value number, Value row, Value unit) {
    auto copy = [&] { copyUnit(to, from, row, unit, first, bytes, !whole, checksCol); };
    total % threads ? when(isLower(number, total), copy) : copy();
  };
  Value own = thread();
  // A thread copies the chunk `unit` of several rows. The number `unit` is the same in all of these
  // rows.
  if (threads % units == 0) {
    Value row = div(own, units), unit = rem(own, units);
    for (int64_t from = 0; from < total; from += threads)
      one(add(own, from), add(row, from / units), unit);
    return;
  }
  loop(own, i32(total), threads, [&](Value number) {
    copyUnit(to, from, div(number, units), rem(number, units), first, bytes, !whole, checksCol);
  });
}

void Sm80Tiles::copyWordsAsync(Value to, const Pointer &from, Value first, int64_t count,
                               int64_t extent) {
  bool whole = extent % count == 0;
  for (int64_t begin = 0; begin < count; begin += threads) {
    auto copy = [&] {
      Value own = add(thread(), begin), index = add(first, own),
            exists = whole ? Value() : isLower(index, extent);
      Value place = address(shift(from, to64(exists ? select(exists, index, i32(0)) : index)));
      NVVM::CpAsyncOp::create(*this, loc, shiftBytes(to, mul(own, 4)), place, 4,
                              NVVM::LoadCacheModifierKind::CA,
                              exists ? select(exists, i32(4), i32(0)) : Value());
    };
    begin + threads > count ? when(isLower(thread(), count - begin), copy) : copy();
  }
}
