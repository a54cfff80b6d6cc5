//===- Sm90KeyProducer.cpp - Copies and additions of the backward pass --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Emits the first warpgroup of the kernel of Sm90KeyGradients.cpp. Warp 0 copies tiles. In scratch,
// the arrays lse and δ of each head begin at an index that is a multiple of the size of a block of
// queries. Therefore copies of blocks are aligned. For queries that do not exist, the scratch
// contains lse = inf.
//
// The consumers store dQ in shared memory. Warp 1 adds this dQ to the sums in scratch, in a fixed
// order. For each block of queries, a count in scratch tells how many blocks of keys have added
// their dQ. A block of keys waits until all earlier blocks of keys that visit the block of queries
// have added their dQ. The first block of keys that visits a block of queries stores its dQ instead
// of adding it. To count the earlier blocks, each lane of the warp examines every 32nd block.
//
//   wait until the consumers have stored         (named barrier)
//   wait until count[block] = number of earlier blocks of keys;
//   sums[block] += the consumers' sums           (cp.reduce.async.bulk)
//   when shared memory has been read: signal the consumers;
//   when the sums have been written: count[block] += 1;
//
// Blocks of keys add their dQ in the order in which the blocks of threads run (BlockOrder.h). This
// order begins with the last keys of a head. If each block of threads processes a pair of blocks,
// the order of the second blocks of the pairs begins with the first keys. With a causal mask, a
// block of keys thus begins with those queries to which the previous block of keys has just added
// its dQ. Therefore blocks wait for each other only briefly.
//
//===----------------------------------------------------------------------===//

#include "Sm90Backward.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

using Places = Sm90KeyPlaces;

namespace {
class KeyProducer : public Sm90KeyRole {
public:
  using Sm90KeyRole::Sm90KeyRole;
  void emit();

private:
  void copyKeys();
  void copyBlock(Value turn, Value number);
  void copyNorms(int64_t place, int64_t from, Value firstRow, const Stage &stage, Value barrier);
};
} // namespace

void KeyProducer::copyNorms(int64_t place, int64_t from, Value firstRow, const Stage &stage,
                            Value barrier) {
  Value row = b.add(b.mul(scores.headNumber(), plan.rowStride), b.to64(firstRow));
  Value target = b.shiftBytes(b.sharedAt(place), b.mul(stage.index, places.normsBytes));
  b.copyBulk(target, b.address(b.shift(b.scratch(b.getF32Type()), b.add(row, from))),
             b.i32(places.normsBytes), barrier);
}

/// Copies the block of queries that is at position `turn` in the sequence of a head. `number` is
/// the number of the block, counted over all heads.
void KeyProducer::copyBlock(Value turn, Value number) {
  Stage stage = stageOf(number);
  Value firstRow = b.mul(scores.blockAt(turn), config.blockQueries),
        head = b.to32(scores.headNumber());
  auto copy = [&](Places::Barrier full, Places::Barrier empty, int64_t place, int64_t bytes,
                  int64_t cols, Value map) {
    Value arrived = barrier(full, stage);
    b.wait(barrier(empty, stage), b.sub(b.i32(1), stage.parity));
    b.expect(arrived, bytes + places.normsBytes);
    copyTile(b, tileOfQueries(place, bytes, stage), map, firstRow, head, cols, arrived);
    return arrived;
  };
  Value arrived = copy(Places::QueriesFull, Places::QueriesEmpty, places.queries, places.queryBytes,
                       shape.dim, b.tensorMap(0));
  copyNorms(places.lse, plan.lse, firstRow, stage, arrived);
  arrived = copy(Places::DoutFull, Places::DoutEmpty, places.douts, places.doutBytes,
                 shape.valueDim, b.tensorMap(1));
  copyNorms(places.delta, plan.delta, firstRow, stage, arrived);
}

/// Copies the keys and values of the block. For the second block of keys, first waits until the
/// consumers have read the keys and values of the first block.
void KeyProducer::copyKeys() {
  Value full = barrier(Places::KeysFull),
        number = b.to32(b.add(b.mul(scores.batch, shape.kvHeads), scores.kvHead));
  if (scores.isBackwards())
    b.wait(barrier(Places::KeysEmpty), b.i32(0));
  b.expect(full, places.queries);
  copyTile(b, tileOfKeys(places.keys), b.tensorMap(2), scores.firstKey, number, shape.dim, full);
  copyTile(b, tileOfKeys(places.values), b.tensorMap(3), scores.firstKey, number, shape.valueDim,
           full);
}

void KeyProducer::emit() {
  forEachBlock(b.i32(0), /*unrolls=*/true, [&](Value, ValueRange before) {
    copyKeys();
    return forEachHead(before, [&](Value head, ValueRange before) -> CodeBuilder::Carried {
      scores.placeHead(head);
      Value after = b.add(before[0], scores.blocks->count);
      b.loop(before[0], after, 1,
             [&](Value number) { copyBlock(b.sub(number, before[0]), number); });
      return {after};
    });
  });
}

void attention::emitKeyProducer(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config,
                                KeyScores &scores) {
  KeyProducer(b, problem, config, scores).emit();
}

namespace {
class QueryAdder : public Sm90KeyRole {
public:
  using Sm90KeyRole::Sm90KeyRole;
  void emit();

private:
  Value addedBefore(Value block);
  void add(Value turn);
};
} // namespace

/// Returns how many blocks of keys add to the block `block` of queries before this block of keys.
/// These are the blocks of later keys (or, in the second turn, of earlier keys) that visit `block`.
Value QueryAdder::addedBefore(Value block) {
  Value own = b.div(scores.firstKey, config.blockKeys()), from = b.add(own, 1),
        to = b.i32(scores.keyBlocks());
  if (Value isSecond = scores.isBackwards()) {
    from = b.select(isSecond, b.i32(0), from);
    to = b.select(isSecond, own, to);
  }
  if (op.getMaskMod().empty())
    return b.sub(to, from);
  SmallVector<Value> count =
      b.loop(b.add(from, b.lane()), to, 32, b.i32(0),
             [&](Value other, ValueRange count) -> CodeBuilder::Carried {
               Value visits = scores.blocksOf(b.mul(other, config.blockKeys())).contains(block);
               return {b.add(count[0], b.select(visits, b.i32(1), b.i32(0)))};
             });
  return b.overWarp(count[0], [&](Value x, Value y) { return b.add(x, y); });
}

/// For the block of queries at position `turn`, adds the part of dQ from this block of keys.
void QueryAdder::add(Value turn) {
  Value block = scores.blockAt(turn), before = addedBefore(block), isFirst = b.isEqual(b.lane(), 0);
  // Use a 32-bit index, which no optimisation turns into loop-carried pointers. This warp has too
  // few registers for such pointers.
  Value number = b.mul(b.to32(scores.headNumber()), plan.rowStride / config.blockQueries),
        index = b.to64(b.uniform(b.add(number, block)));
  Value count = b.address(b.shift(b.scratch(b.getI32Type()), b.add(index, plan.added)));
  Value sums = b.address(
      b.shift(b.scratch(b.getF32Type()), b.add(b.mul(index, querySums.floats()), plan.querySums)));
  Value bytes = b.i32(querySums.floats() * 4), source = b.sharedAt(places.sums);
  b.syncWarp();
  b.syncNamed(b.i32(Places::SumsFull), withAdder());
  b.when(isFirst, [&] {
    b.waitForValue(count, before);
    b.fenceGlobal();
    b.when(
        b.isEqual(before, 0), [&] { b.storeBulk(sums, source, bytes); },
        [&] { b.addBulk(sums, source, bytes); });
    b.commitStores();
    b.waitForStores(0, /*sourceOnly=*/true);
  });
  b.syncWarp();
  b.when(b.isLess(b.add(turn, 1), scores.blocks->count),
         [&] { b.arriveNamed(b.i32(Places::SumsEmpty), withAdder()); });
  b.when(isFirst, [&] {
    b.waitForStores(0, /*sourceOnly=*/false);
    b.fenceGlobal();
    b.increment(count);
  });
}

void QueryAdder::emit() {
  Value zero = b.i32(0);
  forEachBlock({}, /*unrolls=*/true, [&](Value, ValueRange) {
    return forEachHead({}, [&](Value head, ValueRange) -> CodeBuilder::Carried {
      scores.placeHead(head);
      b.when(b.isLess(zero, scores.blocks->count),
             [&] { b.arriveNamed(b.i32(Places::SumsEmpty), withAdder()); });
      b.loop(zero, scores.blocks->count, 1, [&](Value turn) { add(turn); });
      return {};
    });
  });
}

void attention::emitQueryAdder(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config,
                               KeyScores &scores) {
  QueryAdder(b, problem, config, scores).emit();
}
