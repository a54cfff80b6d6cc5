//===- GemmPrefetch.cpp - Prefetches the next panel of rhs ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The epilogue of a strip reads and writes a few columns of many rows. The cache lines of these
// elements are prefetched before the strip's last products. The hardware does not predict these
// lines, because a strip has only a few lines per row. With AMX, only the lines that are read are
// prefetched, because prefetches and loads of tiles wait for the same buffers of the L1 cache.
//
// If there are few rows, a panel of rhs is used only a few times, and reading it from memory takes
// a large part of the time. Therefore, without AMX, each micro-kernel of a panel prefetches a part
// of the next panel into the caches:
//
//   tiles of panel p        tile 0      tile 1      tile 2
//   lines of panel p + 1    aaaa....    ....bbbb    ........cccc
//
//   k contiguous in the source    a tile takes some of the panel's columns and prefetches
//                                 their lines along k, one after another
//   columns contiguous            a tile takes a range of k, with one or a few lines each
//
// Each iteration of the micro-kernel's loop issues one prefetch. If there are fewer lines than
// iterations, some lines are prefetched more than once. This costs instructions but no memory
// traffic. For the last panel, the prefetched addresses may be outside the buffer. This is
// harmless, because a prefetch never fails.
//
//===----------------------------------------------------------------------===//

#include "GemmEmit.h"
#include "fsdp/IR/Kernels.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

/// Returns the number of cache lines per value of k of a panel whose columns are contiguous.
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

void gemm::emitPrefetchOfStrip(CodeBuilder &b, const Kernel &kernel, const Strip &strip) {
  const Plan &plan = kernel.plan;
  auto prefetch = [&](const Operand &operand, bool forWriting) {
    int64_t rowStride = operand.access.binding < 0 ? 0 : operand.strides[plan.rows.back()];
    if (rowStride == 0 || operand.strides[plan.cols.back()] != 1)
      return;
    int64_t bits = getStorageType(operand.access.elementType).getIntOrFloatBitWidth();
    int64_t perLine = lineBytes * 8 / bits;
    Pointer corner = kernel.at(b, operand, strip.position);
    b.loop(b.constant(0), b.constant(plan.mr), 1, [&](Value row) {
      for (int64_t col = 0; col < plan.stripCols(); col += perLine)
        b.prefetch(b.shift(corner, b.add(b.mul(row, rowStride), col)), forWriting);
    });
  };
  for (const Operand &operand : kernel.problem.loads)
    prefetch(operand, /*forWriting=*/false);
  if (plan.arithmetic == Arithmetic::Tiles)
    return;
  for (const StoreStep &store : kernel.problem.stores)
    prefetch(store.dest, /*forWriting=*/true);
}
