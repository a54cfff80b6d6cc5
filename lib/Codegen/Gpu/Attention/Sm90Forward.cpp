//===- Sm90Forward.cpp - Attention with wgmma -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each multiprocessor runs one block of threads, which processes several blocks of queries one
// after another. Two or three warpgroups compute 64 rows each (Sm90Consumer.cpp). Another one
// copies tiles:
//
//   for each block of queries
//     wait until Q's tile is empty; copy Q to it;
//     for each block of keys
//       wait until K's next buffer is empty; copy K to it;
//       wait until V's next buffer is empty; copy V to it;
//
// In f32, V has one buffer, and three other warps compute factors for wgmma (TransposeTile.cpp):
//
//     for each block of keys
//       wait until K has been copied; split K in place;        only for exact products
//       wait until V has been copied and a buffer of Vᵀ is empty; write Vᵀ;
//
// K and V have separate rings of buffers, because scores are computed one block ahead of the sums
// of O. Elements outside a tensor are copied as 0, and barriers also count the bytes of these
// elements.
//
// Sm90Orders.cpp chooses the order of the blocks of queries. Sm90Roles.cpp defines the order of the
// blocks of keys.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Ptx/SplitProducts.h"
#include "Sm90Orders.h"
#include "Sm90Roles.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

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
  copyTile(b, queries(), problem.q, tile.firstRow, tile.number, shape.dim,
           barrier(Sm90Places::QueriesFull));
  b.loop(b.i32(0), sequence.count, 1, [&](Value turn) {
    Value number = b.add(met, turn);
    Stage ofKeys = keyStage(number),
          ofValues = config.isWide ? stageOf(number, 1) : valueStage(number);
    Value firstCol = b.mul(sequence.at(turn), config.blockCols), keysEmpty = isOther(ofKeys.parity),
          valuesEmpty = isOther(ofValues.parity);
    auto fill = [&](Sm90Places::Barrier full, Sm90Places::Barrier empty, const Stage &stage,
                    Value isEmpty, const PanelTile &to, const HeadMap &map, int64_t bytes,
                    int64_t cols) {
      b.wait(barrier(empty, stage), isEmpty);
      b.expect(barrier(full, stage), bytes);
      copyTile(b, to, map, firstCol, tile.kvNumber, cols, barrier(full, stage));
    };
    fill(config.splits ? Sm90Places::KeysCopied : Sm90Places::KeysFull, Sm90Places::KeysEmpty,
         ofKeys, keysEmpty, keys(ofKeys), problem.k, places.keyBytes, shape.dim);
    if (config.isWide)
      fill(Sm90Places::ValuesCopied, Sm90Places::ValuesTaken, ofValues, valuesEmpty,
           {b.sharedAt(places.copiedValues), config.blockCols}, problem.v, places.valueBytes,
           shape.valueDim);
    else
      fill(Sm90Places::ValuesFull, Sm90Places::ValuesEmpty, ofValues, valuesEmpty, values(ofValues),
           problem.v, places.valueBytes, shape.valueDim);
  });
  return b.add(met, sequence.count);
}

namespace {
/// The three warps that compute factors of f32.
class Factors : Sm90Role {
public:
  using Sm90Role::Sm90Role;
  void emit() {
    forEachTile([&](const QueryTile &tile, Value, Value met) {
      FragmentFunction mask(b, problem.op.getMaskMod(), 0, shape, problem.op.getCaptures(),
                            tile.head);
      KeySequence sequence(b, problem, mask, tile);
      b.loop(b.i32(0), sequence.count, 1, [&](Value turn) {
        Value number = b.add(met, turn);
        if (config.splits)
          splitKeys(keyStage(number));
        transposeValues(stageOf(number, 1), valueStage(number));
      });
      return b.add(met, sequence.count);
    });
  }

private:
  void splitKeys(const Stage &stage);
  void transposeValues(const Stage &copied, const Stage &stage);
  /// Makes the warp's accesses visible to products and copies, then arrives at the barriers.
  void signal(ArrayRef<Value> barriers) {
    b.fenceAsync();
    b.syncWarp();
    b.when(b.isEqual(b.lane(), 0), [&] {
      for (Value barrier : barriers)
        b.arrive(barrier);
    });
  }
};
} // namespace

void Factors::splitKeys(const Stage &stage) {
  b.wait(barrier(Sm90Places::KeysCopied, stage), stage.parity);
  splitTile(b, keys(stage).base, problem.places.keyBytes);
  signal(barrier(Sm90Places::KeysFull, stage));
}

void Factors::transposeValues(const Stage &copied, const Stage &stage) {
  b.wait(barrier(Sm90Places::ValuesCopied), copied.parity);
  b.wait(barrier(Sm90Places::ValuesEmpty, stage), b.sub(b.i32(1), stage.parity));
  transposeTile(b, b.sharedAt(problem.places.copiedValues), config.blockCols, values(stage).base,
                paddedValueDim(shape), config.splits ? problem.places.factorBytes : 0);
  signal({barrier(Sm90Places::ValuesFull, stage), barrier(Sm90Places::ValuesTaken)});
}

static void initBarriers(Sm90Builder &b, const Sm90Problem &problem) {
  int64_t warps = problem.config.groups * Sm90Builder::groupThreads / 32;
  b.when(b.isEqual(b.thread(), 0), [&] {
    auto init = [&](int64_t which, int64_t count) {
      b.initBarrier(b.sharedAt(problem.places.barriers + which * Sm90Builder::barrierBytes), count);
    };
    init(Sm90Places::QueriesFull, 1);
    init(Sm90Places::QueriesEmpty, warps);
    const Sm90Config &config = problem.config;
    for (int64_t i = 0; i < Sm90Places::mostStages; ++i) {
      init(Sm90Places::KeysFull + i, config.splits ? splittingWarps : 1);
      init(Sm90Places::KeysEmpty + i, warps);
      init(Sm90Places::ValuesFull + i, config.isWide ? splittingWarps : 1);
      init(Sm90Places::ValuesEmpty + i, warps);
      if (config.splits)
        init(Sm90Places::KeysCopied + i, 1);
    }
    if (config.isWide) {
      init(Sm90Places::ValuesCopied, 1);
      init(Sm90Places::ValuesTaken, splittingWarps);
    }
    b.fenceBarriers();
  });
  b.barrier();
}

static void emitRoles(Sm90Builder &b, const Sm90Problem &problem) {
  int64_t groups = problem.config.groups;
  bool factors = problem.config.isWide;
  Value group = b.warpgroup();
  initBarriers(b, problem);
  b.when(
      b.isEqual(group, 0),
      [&] {
        giveRegisters(b, groups, problem.config.producerRegisters());
        b.when(
            b.isEqual(b.uniform(b.warp()), 0),
            [&] { b.when(b.isElected(), [&] { Producer(b, problem).emit(); }); },
            factors ? function_ref<void()>([&] { Factors(b, problem).emit(); }) : nullptr);
      },
      [&] {
        takeRegisters(b, groups, problem.config.producerRegisters());
        emitConsumer(b, problem, b.sub(group, b.i32(1)));
      });
}

LogicalResult attention::lowerSm90Forward(func::FuncOp kernel, AttentionOp op,
                                          const Sm90Config &config, const GpuTarget &target,
                                          ModuleOp entries, GpuKernel &info) {
  Shape shape = getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType());
  FailureOr<QueryOrder> order = chooseSm90Order(op, config, shape, target);
  if (failed(order))
    return failure();
  bool rounds = config.isWide && !config.splits;
  Sm90Problem problem{config,
                      shape,
                      op,
                      kernel,
                      *order,
                      HeadMap(kernel, op.getQ(), 0, rounds),
                      HeadMap(kernel, op.getK(), 1, rounds),
                      HeadMap(kernel, op.getV(), 2, rounds),
                      HeadMap(kernel, op.getO(), 3),
                      AttentionTiles(op).getKeyTiles(config.blockCols),
                      Sm90Places(config, shape)};
  GpuLaunch launch{
      info.info.name, problem.order.blocks, config.threads(), problem.places.bytes(), {}};
  launch.copyThreads = Sm90Builder::groupThreads;
  launch.cost = costOfForward(op, config, shape, problem.order, target);
  launch.maps = {problem.q.get(config.blockRows()), problem.k.get(config.blockCols),
                 problem.v.get(config.blockCols)};
  if (problem.storesBoxes())
    launch.maps.push_back(problem.o.get(16));
  Sm90Builder b(op.getLoc(), op.getContext(), config.threads());
  b.enter(entries, kernel, launch.symbol, 1, /*scratch=*/false, launch.maps.size());
  emitRoles(b, problem);
  b.leave();
  info.launches.push_back(std::move(launch));
  return success();
}
