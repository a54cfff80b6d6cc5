//===- Sm90Roles.cpp - Roles of the forward pass with wgmma -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Blocks of queries are assigned to blocks of threads at compile time (Sm90Orders.cpp). If a shared
// counter assigned the blocks at run time, its memory would have to be cleared before each launch.
// Clearing this memory takes as much time as the counter would save.
//
//===----------------------------------------------------------------------===//

#include "Sm90Roles.h"
#include "fsdp/Analysis/Gpu/AttentionOrder.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

Sm90Places::Sm90Places(const Sm90Config &config, const Shape &shape) : isWide(config.isWide) {
  int64_t element = config.elementBytes(),
          outputBytes = isWide ? 0 : tileBytes(config.blockRows(), shape.valueDim);
  queryBytes = tileBytes(config.blockRows(), shape.dim, element);
  keyBytes = tileBytes(config.blockCols, shape.dim, element);
  valueBytes = tileBytes(config.blockCols, shape.valueDim, element);
  factorBytes = isWide ? tileBytes(paddedValueDim(shape), config.blockCols, element) : valueBytes;
  keys = config.ownOutput ? queryBytes : std::max(queryBytes, outputBytes);
  values = keys + config.keyStages * config.parts() * keyBytes;
  copiedValues = output = values + config.valueStages * config.parts() * factorBytes;
  barriers = output + (isWide ? valueBytes : config.ownOutput ? outputBytes : 0);
  if (!config.ownOutput)
    output = 0;
}

PanelTile Sm90Role::keys(const Stage &stage) {
  const Sm90Places &places = problem.places;
  return {
      b.shiftBytes(b.sharedAt(places.keys), b.mul(stage.index, config.parts() * places.keyBytes)),
      config.blockCols};
}

PanelTile Sm90Role::values(const Stage &stage) {
  const Sm90Places &places = problem.places;
  return {b.shiftBytes(b.sharedAt(places.values),
                       b.mul(stage.index, config.parts() * places.factorBytes)),
          config.isWide ? paddedValueDim(shape) : config.blockCols};
}

QueryTile Sm90Role::tileAt(Value block, Value round) {
  auto [head, rowBlock] = problem.order.tileAt(b, block, round);
  Value own = b.rem(head, shape.heads);
  QueryTile tile;
  tile.number = head;
  tile.kvNumber = b.div(head, shape.group);
  tile.head = {b.to64(b.div(head, shape.heads)), b.to64(own), b.to64(b.div(own, shape.group))};
  tile.firstRow = b.mul(rowBlock, config.blockRows());
  tile.endRow = b.min(b.add(tile.firstRow, config.blockRows()), b.i32(shape.rows));
  return tile;
}

void Sm90Role::forEachTile(function_ref<Value(const QueryTile &, Value, Value)> body) {
  Value block = b.block();
  b.loop(b.i32(0), problem.order.rounds(b, block), 1, b.i32(0),
         [&](Value round, ValueRange met) -> CodeBuilder::Carried {
           return {body(tileAt(block, round), round, met[0])};
         });
}

bool Sm90Problem::leavesFree() const {
  return mayVisitFree(ranges, shape.rows, config.blockRows());
}

KeySequence::KeySequence(Sm90Builder &b, const Sm90Problem &problem, const FragmentFunction &mask,
                         const QueryTile &tile)
    : count(b.i32(0)), b(b),
      last(llvm::divideCeil(problem.shape.cols, problem.config.blockCols) - 1) {
  SmallVector<BlockRun> free;
  for (const TileRange &range : problem.ranges) {
    auto [begin, fullBegin, fullEnd, end] =
        emitBlockBounds(b, range, mask, tile.head, tile.firstRow, tile.endRow);
    runs.append({{begin, fullBegin}, {fullEnd, end}});
    free.push_back({fullBegin, fullEnd});
  }
  auto addUp = [&](ArrayRef<BlockRun> some) {
    for (const BlockRun &run : some)
      count = b.add(count, run.length(b));
  };
  addUp(runs);
  maskedCount = count;
  addUp(free);
  runs.append(free);
  isEmpty = b.isEqual(count, 0);
  count = b.max(count, b.i32(1));
}

Value KeySequence::at(Value turn) const {
  return b.select(isEmpty, b.i32(last), emitBlockAt(b, runs, turn));
}
