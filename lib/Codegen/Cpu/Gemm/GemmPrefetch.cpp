//===- GemmPrefetch.cpp - Prefetches the next panel of rhs ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The epilogue of a tile reads and writes a few columns of many rows. The cache lines of these
// elements are prefetched before the tile's last product. The hardware does not predict these
// lines, because a tile has only one or two lines per row.
//
// If there are few rows, a panel of rhs is used only a few times, and reading it from memory takes
// a large part of the time. Therefore each micro-kernel of a panel prefetches a part of the next
// panel into the caches:
//
//   tiles of panel p        tile 0      tile 1      tile 2
//   lines of panel p + 1    aaaa....    ....bbbb    ........cccc
//
//   k contiguous in the source    a tile takes some of the panel's columns and prefetches
//                                 their lines along k, one after another
//   columns contiguous            a tile takes a range of k, with one or a few lines each
//
// Each iteration of the micro-kernel's loop issues one prefetch. If there are fewer lines than
// iterations, lines are prefetched more than once, which costs instructions but no memory traffic.
// After the last panel the prefetched addresses may be outside the buffer, because a prefetch never
// fails.
//
//===----------------------------------------------------------------------===//

#include "GemmEmit.h"
#include "fsdp/IR/Kernels.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

static constexpr int64_t lineBytes = 64;

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

void gemm::emitPrefetchOfTile(CodeBuilder &b, const Kernel &kernel, const TileRegion &region) {
  const Plan &plan = kernel.plan;
  auto prefetch = [&](const Operand &operand, bool forWriting) {
    int64_t rowStride = operand.access.binding < 0 ? 0 : operand.strides[plan.rows.back()];
    if (rowStride == 0 || operand.strides[plan.cols.back()] != 1)
      return;
    int64_t bits = getStorageType(operand.access.elementType).getIntOrFloatBitWidth();
    int64_t perLine = lineBytes * 8 / bits;
    Pointer corner = kernel.at(b, operand, region.position);
    b.loop(b.constant(0), b.constant(plan.mr), 1, [&](Value row) {
      for (int64_t col = 0; col < plan.nr; col += perLine)
        b.prefetch(b.shift(corner, b.add(b.mul(row, rowStride), col)), forWriting);
    });
  };
  for (const Operand &operand : kernel.problem.loads)
    prefetch(operand, /*forWriting=*/false);
  for (const StoreStep &store : kernel.problem.stores)
    prefetch(store.dest, /*forWriting=*/true);
}
