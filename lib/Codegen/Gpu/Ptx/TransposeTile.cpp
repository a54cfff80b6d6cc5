//===- TransposeTile.cpp - Transposed factors of f32 for wgmma --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// wgmma multiplies f32 values as TF32, and its factors in shared memory must extend along k. V does
// not do so in P · V. Three warps therefore transpose tiles of V, and split them for exact products
// (SplitProducts.cpp).
//
// A warp reads 8 rows of 32 columns, one column per lane, and writes them as two chunks of a row of
// the transposed tile. The left factor, for example P, consists of accumulators, in which a lane
// holds the columns 2 (l%4) and 2 (l%4) + 1. As a left factor, they must be the values l%4 and
// l%4 + 4 of k. The transposed rows have this order:
//
//   chunk       first         second                 of 8 values of k
//   rows        0 2 4 6       1 3 5 7
//
// In both tiles, chunk c of row r is at place c ^ (r % 8). The 32 lanes of a read hit one row of a
// panel, and the eight lanes that write together hit eight places. There are no bank conflicts.
//
//===----------------------------------------------------------------------===//

#include "GpuRows.h"
#include "SplitProducts.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t panelBytes = Sm90Builder::panelBytes, chunkBytes = 16, chunkWords = 4,
                         rowsAtATime = 8, lanes = 32, panelWords = panelBytes / 4;

static Value exclusive(Sm90Builder &b, Value x, Value y) {
  return b.createOrFold<arith::XOrIOp>(b.loc, x, y);
}

/// Moves this lane's column of 8 rows. `from` is the address of the first row in its panel, `row`
/// that of the transposed row in its panel, and `chunk` the offset of the first chunk.
static void moveColumn(Sm90Builder &b, Value from, Value row, Value chunk, int64_t lowDistance) {
  Value col = b.mul(b.lane(), 4);
  for (int64_t half : {0, 1}) {
    SmallVector<Value> high, low;
    for (int64_t i = half; i < rowsAtATime; i += 2) {
      Value place = b.shiftBytes(from, exclusive(b, col, b.i32(i * chunkBytes)));
      Pointer word{b.shiftBytes(place, i * panelBytes), b.getF32Type(), b.constant(0)};
      Value x = b.load(word.type, word);
      if (!lowDistance) {
        high.push_back(arith::BitcastOp::create(b, b.loc, b.getI32Type(), x));
        continue;
      }
      auto [first, second] = b.splitToTF32(x);
      high.push_back(first);
      low.push_back(second);
    }
    Value place = b.shiftBytes(row, exclusive(b, chunk, b.i32(half * chunkBytes)));
    storeRow(b, high, {place, b.getI32Type(), b.constant(0)}, chunkWords);
    if (lowDistance)
      storeRow(b, low, {b.shiftBytes(place, lowDistance), b.getI32Type(), b.constant(0)},
               chunkWords);
  }
}

void fsdp::transposeTile(Sm90Builder &b, Value from, int64_t rows, Value to, int64_t cols,
                         int64_t lowDistance, int64_t firstCol) {
  int64_t groups = rows / rowsAtATime, panels = llvm::divideCeil(cols, lanes),
          perPanel = panelWords / rowsAtATime;
  b.loop(b.sub(b.warp(), b.i32(1)), b.i32(groups * panels), splittingWarps, [&](Value number) {
    Value group = b.rem(number, groups), panel = b.div(number, groups);
    Value first = b.shiftBytes(
        from, b.add(b.mul(panel, rows * panelBytes), b.mul(group, rowsAtATime * panelBytes)));
    Value row = b.add(b.mul(panel, lanes * panelBytes), b.mul(b.lane(), panelBytes));
    row = b.shiftBytes(to, b.add(b.mul(b.div(group, perPanel), cols * panelBytes), row));
    Value chunk = exclusive(b, b.mul(b.rem(group, perPanel), 2 * chunkBytes),
                            b.mul(b.rem(b.lane(), 8), chunkBytes));
    if (firstCol)
      chunk = exclusive(b, chunk, b.i32(firstCol * chunkBytes / chunkWords));
    auto move = [&] { moveColumn(b, first, row, chunk, lowDistance); };
    if (cols % lanes)
      b.when(b.isLower(b.add(b.mul(panel, lanes), b.lane()), cols), move);
    else
      move();
  });
}
