//===- SplitFactors.cpp - Exact products of f32 with wgmma ------*- C++ -*-===//
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
//   stage      lhs | rhs          |                     copied by the producer: "full"
//              lhs | high of rhs  | low of rhs          by three warps: "split"
//   registers  words of lhs -> high, low                by each consumer
//
// 1. A splitting warp replaces 1024 bytes of rhs by their high parts and writes their low parts
//    behind the tile, until the warps have split the tile. Swizzling does not matter to it.
// 2. A consumer loads its words of lhs with ldmatrix: an 8x8 matrix of 16-bit elements has four
//    words of eight rows, one per lane.
// 3. Before each step of k, it waits until the same step of the previous stage has ended, because
//    both have the same registers. It splits the words of lhs and starts three products. The
//    products of three other steps run meanwhile.
//
// A stage of 128 x n x 32 takes 12 n clocks of the tensor cores, and 256 + 10 n of shared memory.
//
//===----------------------------------------------------------------------===//

#include "SplitFactors.h"
#include "Codegen/Gpu/Ptx/GpuRows.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

static constexpr int64_t chunkBytes = 16, chunkWords = 4, warpBytes = 32 * chunkBytes,
                         chunksAtATime = 2, wordsPerStep = 4;

void SplitFactors::splitRhs(Value stage) {
  Value first = b.shiftBytes(b.shiftBytes(stage, plan.rhs.offset), b.mul(b.lane(), chunkBytes));
  int64_t count = plan.rhs.bytes / (chunksAtATime * warpBytes);
  b.loop(b.sub(b.warp(), b.i32(1)), b.i32(count), warps, [&](Value number) {
    Value place = b.shiftBytes(first, b.mul(number, chunksAtATime * warpBytes));
    auto at = [&](int64_t bytes, Type type) -> Pointer {
      return {b.shiftBytes(place, bytes), type, b.constant(0)};
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
      storeRow(b, low, at(shift + plan.rhs.bytes, b.getI32Type()), chunkWords);
    }
  });
}

SmallVector<Value> SplitFactors::loadLhs(Value rows, Value thread) {
  constexpr int64_t stepBytes = 32;
  Value lane = b.matrixRowOfThread(thread);
  SmallVector<Value> words;
  for (int64_t at = 0; at < Sm90Builder::panelBytes; at += stepBytes) {
    Value step = b.createOrFold<arith::XOrIOp>(b.loc, lane, b.i32(at));
    llvm::append_range(words, b.loadMatrices(b.shiftBytes(rows, step), false));
  }
  return words;
}

SmallVector<Value> SplitFactors::multiply(ArrayRef<Value> sums, ArrayRef<Value> words, Value stage,
                                          function_ref<void()> whenPreviousEnded) {
  SharedFactor high = b.factorAlong(b.shiftBytes(stage, plan.rhs.offset), plan.rhs.width,
                                    plan.config.blockK, sizeof(float));
  auto steps = static_cast<int64_t>(high.steps.size());
  SmallVector<Value> next(sums);
  for (auto [i, step] : llvm::enumerate(high.steps)) {
    SmallVector<Value> own = b.waitForSums(words.slice(i * wordsPerStep, wordsPerStep), steps - 1);
    if (static_cast<int64_t>(i) == steps - 1)
      whenPreviousEnded();
    SmallVector<Value> lowWords, highWords;
    for (Value word : own) {
      auto [first, second] =
          b.splitToTF32(arith::BitcastOp::create(b, b.loc, b.getF32Type(), word));
      highWords.push_back(first);
      lowWords.push_back(second);
    }
    SmallVector<Value> lhs = llvm::to_vector(llvm::concat<Value>(lowWords, highWords, highWords));
    SharedFactor rhs{high.descriptor, {step, step + plan.rhs.bytes, step}, /*across=*/false};
    next = b.multiply(next, lhs, rhs, plan.config.blockCols, plan.element);
  }
  return next;
}
