//===- GemmPrefetch.cpp - Prefetches panels and results ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The epilogue of a strip reads and writes a few columns of many rows. The cache lines of these
// elements are prefetched before the strip's last products. The hardware does not predict these
// lines, because a strip has only a few lines per row. With AMX, the lines of a chunk that are read
// are prefetched beside the products of its strip (StripFinisher). Lines that are only written are
// not prefetched there, because prefetches and loads of tiles wait for the same buffers of the L1
// cache.
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
// If the shared cache is distant (CpuTarget.h), this pays for any number of rows. The loop of the
// micro-kernel then has parts. At the beginning of each part, some lines of the next panel of rhs
// and of the result are prefetched, and each iteration prefetches lines of lhs:
//
//   part 0                       part 1
//   result, row 0; rhs aaa       result, row 1; rhs aaa      ..
//   lhs, row 0: l l l l l l      lhs, row 1: l l l l l l     ..
//
// The lines of lhs belong to the rows that are packed next or, if lhs is packed already, to the
// next packed panel. If there are fewer lines than prefetches, some lines are prefetched more than
// once. This costs instructions but no memory traffic. For the last panel, the prefetched addresses
// may be outside the buffer. This is harmless, because a prefetch never fails.
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

void gemm::emitPrefetchInPart(CodeBuilder &b, const Plan &plan, const Side &side, Pointer next,
                              Value tile, Value part) {
  // The lines of the panel are numbered along the contiguous dimension first.
  bool alongK = side.kStride == 1;
  int64_t bytes = next.type.getIntOrFloatBitWidth() / 8, perLine = lineBytes / bytes;
  bool crosses = !alongK && side.kStride * bytes % lineBytes != 0;
  int64_t inner = alongK ? llvm::divideCeil(plan.kc, perLine) : linesPerK(side) + crosses;
  int64_t tiles = plan.mc / plan.mr, all = inner * (alongK ? side.width : plan.kc);
  int64_t perTile = llvm::divideCeil(all, tiles), perPart = llvm::divideCeil(perTile, plan.parts);
  Value first = b.add(b.mul(tile, perTile), b.mul(part, perPart));
  for (int64_t i = 0; i < perPart; ++i) {
    Value line = b.add(first, i);
    Value at = b.add(b.mul(b.div(line, inner), alongK ? side.stride : side.kStride),
                     b.mul(b.rem(line, inner), perLine));
    b.prefetch(b.shift(next, at), /*forWriting=*/false);
  }
}

NextRows gemm::findNextRows(CodeBuilder &b, const Plan &plan, const Side &side, Pointer first,
                            Pointer nextPacked, Value steps, Value isPacked) {
  int64_t bytes = first.type.getIntOrFloatBitWidth() / 8,
          turnBytes = microUnroll * plan.stepBytes() * side.width;
  auto choose = [&](Value packed, int64_t source) {
    return b.select(isPacked, packed, b.constant(source));
  };
  Pointer source = b.shift(first, b.constant(plan.lhsPanelsPerUse * side.width * side.stride));
  Value turns = b.div(steps, plan.parts * microUnroll);
  return {
      {b.select(isPacked, b.address(nextPacked), b.address(source)), b.getI8Type(), b.constant(0)},
      choose(b.mul(turns, turnBytes), side.stride * bytes),
      choose(b.constant(turnBytes), plan.parts * microUnroll * bytes),
      choose(b.constant(lineBytes), plan.parts * side.stride * bytes)};
}

void gemm::emitPrefetchOfRows(CodeBuilder &b, const Plan &plan, const NextRows &next,
                              const Turn &turn) {
  Pointer at =
      b.shift(next.from, b.add(b.mul(turn.part, next.perPart), b.mul(turn.turn, next.perTurn)));
  int64_t lines = llvm::divideCeil(plan.mr, plan.parts);
  for (int64_t line = 0; line < lines; ++line)
    b.prefetch(b.shift(at, b.mul(next.perLine, line)), /*forWriting=*/false);
}

bool gemm::hasLinesOfRows(const Plan &plan, const Operand &operand) {
  return operand.access.binding >= 0 && operand.strides[plan.rows.back()] != 0 &&
         operand.strides[plan.cols.back()] == 1;
}

void gemm::emitPrefetchOfRow(CodeBuilder &b, const Plan &plan, const Operand &operand,
                             Pointer corner, Value row, int64_t cols, bool forWriting) {
  int64_t bits = getStorageType(operand.access.elementType).getIntOrFloatBitWidth();
  Pointer first = b.shift(corner, b.mul(row, operand.strides[plan.rows.back()]));
  for (int64_t col = 0; col < cols; col += lineBytes * 8 / bits)
    b.prefetch(b.shift(first, b.constant(col)), forWriting);
}

void gemm::emitPrefetchOfStrip(CodeBuilder &b, const Kernel &kernel, const Strip &strip,
                               function_ref<void(function_ref<void(Value)>)> eachRow) {
  const Plan &plan = kernel.plan;
  auto prefetch = [&](const Operand &operand, bool forWriting) {
    if (!hasLinesOfRows(plan, operand))
      return;
    Pointer corner = kernel.at(b, operand, strip.position);
    eachRow([&](Value row) {
      emitPrefetchOfRow(b, plan, operand, corner, row, plan.stripCols(), forWriting);
    });
  };
  for (const Operand &operand : kernel.problem.loads)
    prefetch(operand, /*forWriting=*/false);
  for (const StoreStep &store : kernel.problem.stores)
    prefetch(store.dest, /*forWriting=*/true);
}
