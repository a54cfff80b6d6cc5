//===- SplitProducts.cpp - Exact products of f32 with wgmma -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An f32 value x is the sum of high = tf32(x) and low = tf32(x - high). A product of f32 values is
// computed as low·high + high·low + high·high, in this order for each step of eight values of k,
// like with mma.sync (Sm80Tiles.cpp). The parts of lhs are in registers, those of rhs in shared
// memory:
//
//   tile       rhs                                      copied by the producer
//              high of rhs | low of rhs                 by three warps
//   registers  words of lhs -> high, low                by each consumer
//
// 1. A splitting warp replaces 1024 bytes of rhs by their high parts and writes their low parts
//    behind the tile, until the warps have split the tile. Swizzling does not matter to it.
// 2. Before each step of k, a consumer waits until an earlier step has ended, because both have the
//    same registers. It splits the words of lhs and starts three products. The products of the
//    steps between run meanwhile.
//
//===----------------------------------------------------------------------===//

#include "SplitProducts.h"
#include "GpuRows.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t chunkBytes = 16, chunkWords = 4, warpBytes = 32 * chunkBytes,
                         chunksAtATime = 2;

void fsdp::splitTile(Sm90Builder &b, Value tile, int64_t bytes) {
  Value first = b.shiftBytes(tile, b.mul(b.lane(), chunkBytes));
  int64_t count = bytes / (chunksAtATime * warpBytes);
  b.loop(b.sub(b.warp(), b.i32(1)), b.i32(count), splittingWarps, [&](Value number) {
    Value place = b.shiftBytes(first, b.mul(number, chunksAtATime * warpBytes));
    auto at = [&](int64_t distance, Type type) -> Pointer {
      return {b.shiftBytes(place, distance), type, b.constant(0)};
    };
    SmallVector<SmallVector<Value>> chunks;
    for (int64_t i = 0; i < chunksAtATime; ++i)
      chunks.push_back(loadRow(b, at(i * warpBytes, b.getF32Type()), chunkWords, chunkWords));
    for (auto [i, chunk] : llvm::enumerate(chunks)) {
      SmallVector<Value> high, low;
      for (Value number : chunk) {
        auto [first, second] = b.splitToTF32(number);
        high.push_back(first);
        low.push_back(second);
      }
      auto shift = static_cast<int64_t>(i) * warpBytes;
      storeRow(b, high, at(shift, b.getI32Type()), chunkWords);
      storeRow(b, low, at(shift + bytes, b.getI32Type()), chunkWords);
    }
  });
}

/// Appends what the three products of a step read: words of lhs, and offsets of rhs.
static void appendStep(Sm90Builder &b, ArrayRef<Value> words, int64_t step, int64_t lowDistance,
                       SmallVectorImpl<Value> &lhs, SmallVectorImpl<int64_t> &steps) {
  SmallVector<Value> lowWords, highWords;
  for (Value word : words) {
    auto [first, second] = b.splitToTF32(arith::BitcastOp::create(b, b.loc, b.getF32Type(), word));
    highWords.push_back(first);
    lowWords.push_back(second);
  }
  llvm::append_range(lhs, llvm::concat<Value>(lowWords, highWords, highWords));
  llvm::append_range(steps, std::array{step, step + lowDistance, step});
}

SmallVector<Value> fsdp::multiplySplit(Sm90Builder &b, ArrayRef<Value> sums,
                                       function_ref<SmallVector<Value>(int64_t)> wordsOf,
                                       const SharedFactor &rhs, int64_t lowDistance, int64_t cols,
                                       int64_t pending, function_ref<void(int64_t)> beforeStep) {
  SmallVector<Value> next(sums);
  for (auto [i, step] : llvm::enumerate(rhs.steps)) {
    auto number = static_cast<int64_t>(i);
    SmallVector<Value> own = b.waitForSums(wordsOf(number), pending - 1), lhs;
    if (beforeStep)
      beforeStep(number);
    SharedFactor three{rhs.descriptor, {}, /*across=*/false};
    appendStep(b, own, step, lowDistance, lhs, three.steps);
    next = b.multiply(next, lhs, three, cols, b.getF32Type());
  }
  return next;
}

SmallVector<Value> fsdp::multiplySplitRows(Sm90Builder &b, Value lhs, ArrayRef<int64_t> places,
                                           const SharedFactor &rhs, int64_t lowDistance,
                                           int64_t cols, int64_t pending, int64_t ahead) {
  Value thread = b.matrixRowOfThread(b.threadOfGroup());
  SmallVector<SmallVector<Value>> words;
  auto load = [&](int64_t step) {
    int64_t inRow = places[step] % Sm90Builder::panelBytes;
    Value place = b.createOrFold<arith::XOrIOp>(b.loc, thread, b.i32(inRow));
    words.push_back(b.loadMatrices(b.shiftBytes(b.shiftBytes(lhs, place), places[step] - inRow),
                                   /*transposed=*/false));
  };
  auto steps = static_cast<int64_t>(places.size());
  for (int64_t step = 0; step < std::min(ahead, steps); ++step)
    load(step);
  auto wordsOf = [&](int64_t step) {
    if (step + ahead < steps)
      load(step + ahead);
    return words[step];
  };
  return multiplySplit(b, {}, wordsOf, rhs, lowDistance, cols, pending);
}

SmallVector<Value> fsdp::toWideFactor(Sm90Builder &b, ArrayRef<Value> sums, bool splits) {
  SmallVector<Value> words;
  for (size_t piece = 0; piece < sums.size(); piece += wordsPerStep)
    for (int64_t i : {0, 2, 1, 3}) {
      Value x = sums[piece + i], word = arith::BitcastOp::create(b, b.loc, b.getI32Type(), x);
      words.push_back(splits ? word : b.roundToTF32(x));
    }
  return words;
}

SmallVector<Value> fsdp::multiplySplitAtOnce(Sm90Builder &b, ArrayRef<Value> sums,
                                             ArrayRef<Value> words, const SharedFactor &rhs,
                                             int64_t lowDistance, int64_t cols) {
  SmallVector<Value> lhs;
  SharedFactor all{rhs.descriptor, {}, /*across=*/false};
  for (auto [i, step] : llvm::enumerate(rhs.steps))
    appendStep(b, words.slice(i * wordsPerStep, wordsPerStep), step, lowDistance, lhs, all.steps);
  return b.multiply(sums, lhs, all, cols, b.getF32Type());
}
