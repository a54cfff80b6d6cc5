//===- Sm80Blocks.cpp - What the attention kernels of a GPU share -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Sm80Blocks.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

BlockSequence::BlockSequence(GpuBuilder &b, ArrayRef<TileRange> ranges, const FragmentFunction &mask, const Head &head,
                             Value first, Value last)
    : count(b.i32(0)), b(b) {
  for (const TileRange &range : ranges) {
    auto all = emitBounds(b, range, mask.function, mask.unit, head, b.to64(first), b.to64(last));
    for (Value &bound : all)
      bound = b.to32(bound);
    bounds.push_back({all[0], all[1], all[2], all[3]});
    count = b.add(count, b.max(b.sub(all[3], all[0]), b.i32(0)));
  }
}

Value BlockSequence::at(Value turn) const {
  Value block, left = turn;
  for (const Bounds &range : bounds) {
    Value here = b.add(range.begin, left), isBefore = b.isLower(left, 0);
    block = block ? b.select(isBefore, block, here) : here;
    left = b.sub(left, b.max(b.sub(range.end, range.begin), b.i32(0)));
  }
  return block ? block : b.i32(0);
}

Value BlockSequence::contains(Value block) const {
  Value found = b.boolean(false);
  for (const Bounds &range : bounds)
    found = b.either(found, b.both(b.isLess(block, range.end), b.isLess(range.begin, b.add(block, 1))));
  return found;
}

Value BlockSequence::isFree(Value block) const {
  Value free = b.boolean(false);
  for (const Bounds &range : bounds)
    free = b.either(free, b.both(b.isLess(block, range.fullEnd), b.isLess(range.fullBegin, b.add(block, 1))));
  return free;
}

SharedTile attention::stageOf(GpuBuilder &b, const SharedTile &tile, int64_t rows, Value turn) {
  return {b.shiftBytes(tile.base, b.mul(b.rem(turn, 2), rows * tile.pitch)), tile.pitch};
}

SharedTile attention::rowsOfWarp(GpuBuilder &b, const SharedTile &tile, int64_t rows) {
  return {b.shiftBytes(tile.base, b.mul(b.warp(), rows * tile.pitch)), tile.pitch};
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

GlobalRows attention::slabOf(GpuBuilder &b, const Pointer &tensor, Value batch, Value head, int64_t heads, int64_t rows,
                             int64_t cols) {
  Value number = b.add(b.mul(batch, heads), head);
  return {b.shift(tensor, b.mul(number, rows * cols)), rows, cols};
}

void attention::storeRows(GpuBuilder &b, const Fragment &fragment, ArrayRef<Value> numbers, ArrayRef<Value> factors,
                          const GlobalRows &to) {
  Value own = b.colOfLane();
  const Layout &layout = fragment.layout;
  auto storeRow = [&](int64_t i) {
    Pointer row = b.shift(to.place, b.add(b.mul(b.to64(numbers[i]), to.cols), b.to64(own)));
    for (int64_t reg = 0; reg < layout.numRegisters(); reg += 2) {
      int64_t col = layout.place(reg).second;
      if (layout.rowOf(reg) != i || col >= to.cols)
        continue;
      Pointer place = b.shift(row, b.constant(col));
      auto value = [&](int64_t k) { return factors[i] ? b.mulf(fragment.registers[reg + k], factors[i]) : fragment.registers[reg + k]; };
      if (to.cols % 2 == 0) {
        auto store = [&] { b.storePair(value(0), value(1), place); };
        col + 8 <= to.cols ? store() : b.when(b.isLower(b.add(own, col), to.cols), store);
        continue;
      }
      for (int64_t k : {0, 1})
        b.when(b.isLower(b.add(own, col + k), to.cols),
               [&] { b.store(b.convertFloat(value(k), to.place.type), b.shift(place, b.constant(k))); });
    }
  };
  for (int64_t i = 0; i < layout.rowsOfLane(); ++i)
    b.when(b.isLower(numbers[i], to.rows), [&] { storeRow(i); });
}
