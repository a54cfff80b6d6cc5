//===- Sm90Producer.cpp - Producer of the forward pass with wgmma --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   for each block of queries
//     wait until Q's tile is empty; copy Q to it;
//     for each block of keys
//       wait until K's next buffer is empty; copy K to it;
//       wait until V's next buffer is empty; copy V to it;
//
// K and V have separate rings of buffers, because scores are computed one block ahead of the sums
// of O. Elements outside a tensor are copied as 0, and barriers also count the bytes of these
// elements.
//
//===----------------------------------------------------------------------===//

#include "Sm90Roles.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;

namespace {
class Producer : Sm90Role {
public:
  using Sm90Role::Sm90Role;
  void emit() {
    for (int64_t map = 0; map < 3; ++map)
      b.prefetchMap(b.tensorMap(map));
    forEachTile(
        [&](const QueryTile &tile, Value before, Value met) { return copy(tile, before, met); });
  }

private:
  Value copy(const QueryTile &tile, Value before, Value met);
};
} // namespace

Value Producer::copy(const QueryTile &tile, Value before, Value met) {
  const Sm90Places &places = problem.places;
  FragmentFunction mask(b, problem.op.getMaskMod(), 0, shape, problem.op.getCaptures(), tile.head);
  KeySequence sequence(b, problem, mask, tile);
  auto isOther = [&](Value parity) { return b.sub(b.i32(1), parity); };
  b.wait(barrier(Sm90Places::QueriesEmpty), isOther(b.rem(before, 2)));
  b.expect(barrier(Sm90Places::QueriesFull), places.queryBytes);
  copyTile(b, queries(), b.tensorMap(0), tile.firstRow, tile.number, shape.dim,
           barrier(Sm90Places::QueriesFull));
  b.loop(b.i32(0), sequence.count, 1, [&](Value turn) {
    Stage stage = stageOf(b.add(met, turn));
    Value firstCol = b.mul(sequence.at(turn), config.blockCols), isEmpty = isOther(stage.parity);
    auto fill = [&](Sm90Places::Barrier full, Sm90Places::Barrier empty, const PanelTile &to,
                    int64_t map, int64_t bytes, int64_t cols) {
      b.wait(barrier(empty, stage), isEmpty);
      b.expect(barrier(full, stage), bytes);
      copyTile(b, to, b.tensorMap(map), firstCol, tile.kvNumber, cols, barrier(full, stage));
    };
    fill(Sm90Places::KeysFull, Sm90Places::KeysEmpty, keys(stage), 1, places.keyBytes, shape.dim);
    fill(Sm90Places::ValuesFull, Sm90Places::ValuesEmpty, values(stage), 2, places.valueBytes,
         shape.valueDim);
  });
  return b.add(met, sequence.count);
}

void attention::emitProducer(Sm90Builder &b, const Sm90Problem &problem) {
  Producer(b, problem).emit();
}
