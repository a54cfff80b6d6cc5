//===- Sm80Blocks.cpp - Block traversal shared by the attention kernels --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Sm80Blocks.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

Value attention::emitBlockAt(GpuBuilder &b, ArrayRef<BlockRun> runs, Value turn) {
  Value block, left = turn;
  for (const BlockRun &run : runs) {
    Value here = b.add(run.begin, left), isBefore = b.isLower(left, 0);
    block = block ? b.select(isBefore, block, here) : here;
    left = b.sub(left, run.length(b));
  }
  return block ? block : b.i32(0);
}

std::array<Value, 4> attention::emitBlockBounds(GpuBuilder &b, const TileRange &range,
                                                const FragmentFunction &mask, const Head &head,
                                                Value first, Value last) {
  SmallVector<Value> wide =
      emitBounds(b, range, mask.function, mask.unit, head, b.to64(first), b.to64(last));
  std::array<Value, 4> bounds;
  llvm::transform(wide, bounds.begin(), [&](Value bound) { return b.to32(bound); });
  return bounds;
}

BlockSequence::BlockSequence(GpuBuilder &b, ArrayRef<TileRange> ranges,
                             const FragmentFunction &mask, const Head &head, Value first,
                             Value last)
    : count(b.i32(0)), b(b) {
  for (const TileRange &range : ranges) {
    auto [begin, fullBegin, fullEnd, end] = emitBlockBounds(b, range, mask, head, first, last);
    all.push_back({begin, end});
    full.push_back({fullBegin, fullEnd});
    count = b.add(count, all.back().length(b));
  }
}

Value BlockSequence::at(Value turn) const { return emitBlockAt(b, all, turn); }

static Value isInOne(GpuBuilder &b, ArrayRef<BlockRun> runs, Value block) {
  Value found = b.boolean(false);
  for (const BlockRun &run : runs)
    found = b.either(found, b.both(b.isLess(block, run.end), b.isLess(run.begin, b.add(block, 1))));
  return found;
}

Value BlockSequence::contains(Value block) const { return isInOne(b, all, block); }
Value BlockSequence::isFree(Value block) const { return isInOne(b, full, block); }

SharedTile attention::stageOf(GpuBuilder &b, const SharedTile &tile, int64_t rows, Value turn) {
  return {b.shiftBytes(tile.base, b.mul(b.rem(turn, 2), rows * tile.pitch)), tile.pitch};
}

SharedTile attention::rowsOfWarp(GpuBuilder &b, const SharedTile &tile, int64_t rows) {
  return {b.shiftBytes(tile.base, b.mul(b.warp(), rows * tile.pitch)), tile.pitch};
}

HeadTensor attention::headTensorOf(const GpuBuilder &b, func::FuncOp kernel, Value heads) {
  auto type = cast<RankedTensorType>(heads.getType());
  std::optional<PlacedHeads> placed = placeHeads(kernel, heads);
  if (!placed)
    return {{}, type, {}};
  return {b.binding(placed->in), type, placed->layout};
}

/// Returns the distance between heads if all heads have the same distance, or 0.
static int64_t distanceOfHeads(const HeadTensor &tensor) {
  int64_t heads = tensor.type.getDimSize(1), batch = tensor.layout.batch, head = tensor.layout.head;
  if (heads == 1)
    return batch;
  return tensor.type.getDimSize(0) == 1 || batch == heads * head ? head : 0;
}

Value HeadTensor::offsetOf(GpuBuilder &b, Value batch, Value head) const {
  Value first;
  if (int64_t distance = distanceOfHeads(*this))
    first = b.mul(b.add(b.mul(batch, type.getDimSize(1)), head), distance);
  else
    first = b.add(b.mul(batch, layout.batch), b.mul(head, layout.head));
  return layout.offset ? b.add(first, layout.offset) : first;
}

Value HeadTensor::offsetOf(GpuBuilder &b, Value head) const {
  int64_t heads = type.getDimSize(1), distance = distanceOfHeads(*this);
  if (!distance)
    return offsetOf(b, b.div(head, heads), b.rem(head, heads));
  Value first = b.mul(head, distance);
  return layout.offset ? b.add(first, layout.offset) : first;
}

GlobalRows attention::slabOf(GpuBuilder &b, const HeadTensor &tensor, Value batch, Value head) {
  return {b.shift(tensor.place, tensor.offsetOf(b, batch, head)), tensor.type.getDimSize(2),
          tensor.type.getDimSize(3), tensor.layout.row};
}

void attention::storeRows(GpuBuilder &b, const Fragment &fragment, ArrayRef<Value> numbers,
                          ArrayRef<Value> factors, const GlobalRows &to) {
  Value own = b.colOfLane();
  const Layout &layout = fragment.layout;
  auto storeRow = [&](int64_t i) {
    Pointer row = b.shift(to.place, b.add(b.mul(b.to64(numbers[i]), to.stride), b.to64(own)));
    for (int64_t reg = 0; reg < layout.numRegisters(); reg += 2) {
      int64_t col = layout.place(reg).second;
      if (layout.rowOf(reg) != i || col >= to.cols)
        continue;
      Pointer place = b.shift(row, b.constant(col));
      auto value = [&](int64_t k) {
        return factors[i] ? b.mulf(fragment.registers[reg + k], factors[i])
                          : fragment.registers[reg + k];
      };
      if (to.cols % 2 == 0 && to.stride % 2 == 0) {
        auto store = [&] { b.storePair(value(0), value(1), place); };
        col + 8 <= to.cols ? store() : b.when(b.isLower(b.add(own, col), to.cols), store);
        continue;
      }
      for (int64_t k : {0, 1})
        b.when(b.isLower(b.add(own, col + k), to.cols), [&] {
          b.store(b.convertFloat(value(k), to.place.type), b.shift(place, b.constant(k)));
        });
    }
  };
  for (int64_t i = 0; i < layout.rowsOfLane(); ++i)
    b.when(b.isLower(numbers[i], to.rows), [&] { storeRow(i); });
}
