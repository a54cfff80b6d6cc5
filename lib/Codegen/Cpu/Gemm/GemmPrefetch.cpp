//===- GemmPrefetch.cpp - Prefetches the next panel of rhs ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// If there are few rows, a panel of rhs is used only a few times, and reading it from memory
// takes a large part of the time. Therefore the micro-kernels of a panel prefetch the next
// panel into the caches, each of them a part:
//
//   tiles of panel p        tile 0      tile 1      tile 2
//   lines of panel p + 1    aaaa....    ....bbbb    ........cccc
//
//   k contiguous in the source    a tile takes some of the panel's columns and prefetches
//                                 their lines along k, one after the other
//   columns contiguous            a tile takes a range of k, with one or a few lines each
//
// Each iteration of the micro-kernel's loop issues one prefetch. If there are fewer lines
// than iterations, lines are prefetched more than once, which costs instructions but no
// memory traffic. After the last panel the prefetches go beyond it. They may be outside of
// the buffer, as a prefetch never fails.
//
//===----------------------------------------------------------------------===//

#include "GemmEmit.h"
#include "fsdp/IR/Kernels.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

static constexpr int64_t lineBytes = 64;

/// Returns the number of cache lines that one k of a panel spans if its columns are contiguous.
static int64_t linesPerK(const Side &side) {
  int64_t bytes = getStorageType(side.operand.access.elementType).getIntOrFloatBitWidth() / 8;
  return llvm::divideCeil(side.width * bytes, lineBytes);
}

void gemm::emitPrefetchOfPanel(CodeBuilder &b, const Plan &plan, const Side &side, Pointer next,
                               Value tile, Value k) {
  Value turn = b.div(k, microUnroll);
  if (side.kStride == 1) {
    int64_t rows = llvm::PowerOf2Ceil(llvm::divideCeil(side.width, plan.mc / plan.mr));
    Value row = b.add(b.mul(tile, rows), b.rem(turn, rows));
    b.prefetch(b.shift(next, b.add(b.mul(row, side.stride), b.mul(k, plan.kPerStep()))),
               /*forWriting=*/false);
    return;
  }
  int64_t lines = linesPerK(side), turns = plan.kSteps(plan.kc) / microUnroll;
  int64_t share = llvm::divideCeil(plan.kc, plan.mc / plan.mr);
  Value slot = b.div(turn, std::max<int64_t>(turns / (share * lines), 1));
  Value source = b.add(b.mul(tile, share), b.div(slot, lines));
  int64_t perLine = llvm::divideCeil(side.width, lines);
  b.prefetch(b.shift(next, b.add(b.mul(source, side.kStride), b.mul(b.rem(slot, lines), perLine))),
             /*forWriting=*/false);
}
