//===- SplitFactors.cpp - Exact products of f32 with wgmma ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each stage holds a tile of lhs, a tile of rhs and space for the low parts of rhs (see
// SplitProducts.cpp):
//
//   stage      lhs | rhs          |                     copied by the producer: "full"
//              lhs | high of rhs  | low of rhs          by three warps: "split"
//
// A consumer loads its words of lhs with ldmatrix: an 8x8 matrix of 16-bit elements has four words
// of eight rows, one per lane. Products of a step wait for the same step of the previous stage. A
// stage of 128 x n x 32 takes 12 n clocks of the tensor cores, and 256 + 10 n of shared memory.
//
//===----------------------------------------------------------------------===//

#include "SplitFactors.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

void SplitFactors::splitRhs(Value stage) {
  splitTile(b, b.shiftBytes(stage, plan.rhs.offset), plan.rhs.bytes);
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
  return multiplySplit(
      b, sums,
      [&](int64_t step) {
        return SmallVector<Value>(words.slice(step * wordsPerStep, wordsPerStep));
      },
      high, plan.rhs.bytes, plan.config.blockCols, steps,
      [&](int64_t step) {
        if (step == steps - 1)
          whenPreviousEnded();
      });
}
