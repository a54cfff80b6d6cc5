//===- TransposedVectors.cpp - Transposes a square of lanes -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Transposes n rows of n lanes by n log2(n) shuffles of two vectors. Vectors of 8 lanes of 32 bits
// have two blocks of 128 bits:
//
//   a0 a1 a2 a3 | a4 ..      a0 b0 c0 d0 | a4 b4 c4 d4      a0 b0 c0 d0 | e0 f0 g0 h0
//   b0 b1 b2 b3 | b4 ..      a1 b1 c1 d1 | a5 b5 c5 d5      a1 b1 c1 d1 | e1 f1 g1 h1
//   ..                  1.   ..                        2.   ..
//   e0 e1 e2 e3 | e4 ..      e0 f0 g0 h0 | e4 f4 g4 h4      a4 b4 c4 d4 | e4 f4 g4 h4
//
// 1. As many rows as a block has lanes are merged within their blocks: CPUs shuffle lanes within a
//    block faster than across blocks.
// 2. Results with the same lane of each block are merged by whole blocks.
//
//===----------------------------------------------------------------------===//

#include "CodeBuilder.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Merges the vectors v0, v1, ... of `list`, by shuffles. The lanes of a vector form blocks of
/// `block` lanes. A block consists of one unit of `unit` lanes for each vector in `list`. Each
/// block of result j contains unit j of v0, of v1, and so on.
static SmallVector<Value> mergeUnits(CodeBuilder &b, ArrayRef<Value> list, int64_t unit,
                                     int64_t block) {
  if (list.size() == 1)
    return {list.front()};
  int64_t lanes = cast<VectorType>(list.front().getType()).getNumElements();
  auto pick = [&](Value first, Value second, int64_t odd) {
    SmallVector<int64_t> mask;
    for (int64_t at = 0; at < lanes; at += block)
      for (int64_t source : {int64_t(0), lanes})
        for (int64_t i = odd * unit; i < block; i += 2 * unit)
          for (int64_t j = 0; j < unit; ++j)
            mask.push_back(source + at + i + j);
    return b.shuffle(first, second, mask);
  };
  SmallVector<Value> halves[2];
  for (int64_t odd : {0, 1})
    for (size_t i = 0; i < list.size(); i += 2)
      halves[odd].push_back(pick(list[i], list[i + 1], odd));
  SmallVector<Value> even = mergeUnits(b, halves[0], unit, block),
                     odd = mergeUnits(b, halves[1], unit, block);
  SmallVector<Value> result;
  for (auto [e, o] : llvm::zip_equal(even, odd))
    result.append({e, o});
  return result;
}

SmallVector<Value> CodeBuilder::transpose(ArrayRef<Value> rows) {
  int64_t lanes = rows.size();
  int64_t bits = getElementTypeOrSelf(rows.front().getType()).getIntOrFloatBitWidth();
  int64_t perBlock = std::min(lanes, 128 / bits), blocks = lanes / perBlock;
  // Group g consists of `perBlock` rows, beginning at row g * perBlock. inBlock[g][j] holds, for
  // each block of 128 bits, lane j of this block from all rows of the group.
  SmallVector<SmallVector<Value>> inBlock;
  for (int64_t g = 0; g < blocks; ++g)
    inBlock.push_back(mergeUnits(*this, rows.slice(g * perBlock, perBlock), 1, perBlock));
  SmallVector<Value> result(lanes);
  for (int64_t j = 0; j < perBlock; ++j) {
    SmallVector<Value> column;
    for (int64_t g = 0; g < blocks; ++g)
      column.push_back(inBlock[g][j]);
    for (auto [block, value] : llvm::enumerate(mergeUnits(*this, column, perBlock, lanes)))
      result[block * perBlock + j] = value;
  }
  return result;
}
