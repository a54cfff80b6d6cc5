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
// The consumers store dQ in shared memory, in one slice of columns or, if warpgroups share keys, in
// several. Warp 1 adds this dQ to the sums in scratch, in a fixed order. For each block of queries,
// a count in scratch tells how many blocks of keys have added their dQ. A block of keys waits until
// all earlier blocks of keys that visit the block of queries have added their dQ. The first block
// of keys that visits a block of queries stores its dQ instead of adding it. The last block of keys
// loads the sums, which are in the L2 cache, while its consumers still multiply; the consumers add
// their dQ, and round. To count the earlier blocks, each lane of the warp examines every 32nd
// block.
//
//   last block of keys? (for each slice)         no               yes
//   wait until count[block] = number of earlier blocks of keys;   x
//   load sums[block] to shared memory;                            x
//   signal the consumers, wait until they have stored             (named barriers)
//   wait until count[block] = number of ..;      x, first slice
//   sums[block] += the consumers' sums;          x                (cp.reduce.async.bulk)
//   when the sums have been written: count[block] += 1;   x, last slice
//   dQ[block] = the consumers' result;                            x
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
  Stage queries = stageOf(number), douts = doutStageOf(number, queries);
  Value firstRow = b.mul(scores.blockAt(turn), config.blockQueries),
        head = b.to32(scores.headNumber());
  // With fewer buffers for dO than for Q, this thread has no register for a pointer to the norms,
  // which LLVM would carry from one block to the next. If the only loop is over heads, LLVM would
  // compute the row before this loop.
  if (config.doutStages < Places::stages || scores.loopsOnlyOverHeads())
    firstRow = b.opaque(firstRow);
  auto copy = [&](Places::Barrier full, Places::Barrier empty, const Stage &stage, int64_t place,
                  int64_t bytes, int64_t cols, const HeadMap &map) {
    Value arrived = barrier(full, stage);
    b.wait(barrier(empty, stage), b.sub(b.i32(1), stage.parity));
    b.expect(arrived, bytes + places.normsBytes);
    copyTile(b, tileOfQueries(place, bytes, stage), map, firstRow, head, cols, arrived);
    return arrived;
  };
  Value arrived = copy(Places::QueriesFull, Places::QueriesEmpty, queries, places.queries,
                       places.queryBytes, shape.dim, maps.q);
  copyNorms(places.lse, plan.lse, firstRow, queries, arrived);
  arrived = copy(Places::DoutFull, Places::DoutEmpty, douts, places.douts, places.doutBytes,
                 shape.valueDim, maps.dout);
  copyNorms(places.delta, plan.delta, firstRow, douts, arrived);
}

/// Copies the keys and values of the block. For the second block of keys, first waits until the
/// consumers have read the keys and values of the first block.
void KeyProducer::copyKeys() {
  Value full = barrier(Places::KeysFull),
        number = b.to32(b.add(b.mul(scores.batch, shape.kvHeads), scores.kvHead));
  if (scores.isBackwards())
    b.wait(barrier(Places::KeysEmpty), b.i32(0));
  b.expect(full, places.queries); // the bytes of K and V
  copyTile(b, tileOfKeys(places.keys), maps.k, scores.firstKey, number, shape.dim, full);
  copyTile(b, tileOfKeys(places.values), maps.v, scores.firstKey, number, shape.valueDim, full);
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
  /// The place of this block of keys among those that visit a block of queries.
  struct Place {
    Value before; ///< number of blocks of keys that add before
    Value isLast; ///< null if no block of keys rounds
  };
  Place placeOf(Value block);
  /// The number of a block of queries, counted over all heads, and the addresses of its count and
  /// of its sums.
  struct Sums {
    Value number, count, sums;
  };
  Sums sumsAt(Value number, int64_t slice);
  Pointer visit() { return {b.sharedAt(places.visit), b.getI32Type(), b.constant(0)}; }
  void loadSums(const Sums &from, int64_t bytes);
  void prepare(const Place &own, const Sums &sums, int64_t bytes);
  void addSums(const Sums &to, Value before, int64_t slice);
  void storeResult(const Sums &of, int64_t slice);
  Value addSlice(const Place &own, Value number, int64_t slice);
  void add(Value turn);
};
} // namespace

/// Returns the place of this block of keys among those that visit the block `block` of queries.
/// Earlier blocks are those of later keys (or, in the second turn, of earlier keys).
QueryAdder::Place QueryAdder::placeOf(Value block) {
  Value own = b.div(scores.firstKey, config.blockKeys()), isSecond = scores.isBackwards();
  int64_t blocks = scores.keyBlocks();
  if (op.getMaskMod().empty()) {
    Value before = b.sub(b.i32(blocks - 1), own);
    if (isSecond)
      before = b.select(isSecond, own, before);
    return {before, roundsQueries ? b.isEqual(before, blocks - 1) : Value()};
  }
  // Count earlier blocks in the low half of a register, and all blocks in the high half.
  constexpr int64_t one = 1 << 16;
  SmallVector<Value> count =
      b.loop(b.lane(), b.i32(blocks), 32, b.i32(0),
             [&](Value other, ValueRange count) -> CodeBuilder::Carried {
               Value visits = scores.blocksOf(b.mul(other, config.blockKeys())).contains(block),
                     isBefore = b.isLess(own, other);
               if (isSecond)
                 isBefore = b.select(isSecond, b.isLess(other, own), isBefore);
               Value adds = b.select(isBefore, b.i32(one + 1), b.i32(one));
               return {b.add(count[0], b.select(visits, adds, b.i32(0)))};
             });
  Value both = b.overWarp(count[0], [&](Value x, Value y) { return b.add(x, y); }),
        before = b.rem(both, one);
  return {before, roundsQueries ? b.isEqual(b.sub(b.div(both, one), before), 1) : Value()};
}

/// Loads the sums of a slice to shared memory. One thread runs this code.
void QueryAdder::loadSums(const Sums &from, int64_t bytes) {
  Pointer loads{b.sharedAt(places.loads), b.getI32Type(), b.constant(0)};
  Value number = b.load(b.getI32Type(), loads), loaded = barrier(Places::SumsLoaded);
  b.expect(loaded, bytes);
  b.copyBulk(b.sharedAt(places.sums), from.sums, b.i32(bytes), loaded);
  b.wait(loaded, b.rem(number, 2));
  b.store(b.add(number, 1), loads);
}

/// Prepares shared memory for the dQ of the consumers. One thread runs this code.
void QueryAdder::prepare(const Place &own, const Sums &sums, int64_t bytes) {
  Value isAlone = b.isEqual(own.before, 0);
  b.when(b.both(own.isLast, b.isLess(b.i32(0), own.before)), [&] {
    b.waitForValue(sums.count, own.before);
    b.fenceGlobal();
    loadSums(sums, bytes);
  });
  Value rounds = b.select(isAlone, b.i32(Places::RoundsAlone), b.i32(Places::RoundsSums));
  b.store(b.select(own.isLast, rounds, b.i32(Places::Adds)), visit());
}

/// Returns the sums of the block of queries `number`. Makes the number opaque, so that registers do
/// not hold addresses from one call to the next. It has 32 bits, so that no optimisation turns it
/// into loop-carried pointers. This warp has too few registers for such values.
QueryAdder::Sums QueryAdder::sumsAt(Value number, int64_t slice) {
  Value opaque = b.uniform(number), index = b.to64(opaque);
  int64_t first = plan.querySums + querySums.floatsBefore(slice);
  return {opaque, b.address(b.shift(b.scratch(b.getI32Type()), b.add(index, plan.added))),
          b.address(
              b.shift(b.scratch(b.getF32Type()), b.add(b.mul(index, querySums.floats()), first)))};
}

/// Adds a slice of the consumers' dQ to the sums. Waits for the earlier blocks of keys before the
/// first slice, and counts the addition after the last slice. One thread runs this code.
void QueryAdder::addSums(const Sums &to, Value before, int64_t slice) {
  Value bytes = b.i32(querySums.floatsOf(slice) * 4), source = b.sharedAt(places.sums);
  if (slice == 0) {
    b.waitForValue(to.count, before);
    b.fenceGlobal();
  }
  b.when(
      b.isEqual(before, 0), [&] { b.storeBulk(to.sums, source, bytes); },
      [&] { b.addBulk(to.sums, source, bytes); });
  b.commitStores();
  bool isLast = slice == querySums.slices - 1;
  b.waitForStores(0, /*sourceOnly=*/!isLast);
  if (!isLast)
    return;
  b.fenceGlobal();
  b.increment(to.count);
}

/// Stores a slice of the consumers' rounded dQ. One thread runs this code.
void QueryAdder::storeResult(const Sums &of, int64_t slice) {
  int64_t blocks = plan.rowStride / config.blockQueries;
  bool isOnly = querySums.slices == 1;
  storeTile(b, {b.sharedAt(places.rounded), config.blockQueries}, maps.dq,
            b.mul(b.rem(of.number, blocks), config.blockQueries), b.div(of.number, blocks),
            isOnly ? 0 : querySums.firstCol(slice),
            isOnly ? shape.dim : querySums.firstCol(slice + 1));
  b.commitStores();
  b.waitForStores(0, /*sourceOnly=*/true);
}

/// Adds or stores a slice of dQ of the block of queries `number`. Returns the opaque number.
Value QueryAdder::addSlice(const Place &own, Value number, int64_t slice) {
  Value isFirst = b.isEqual(b.lane(), 0);
  if (roundsQueries) {
    Sums sums = sumsAt(number, slice);
    number = sums.number;
    b.when(isFirst, [&] { prepare(own, sums, querySums.floatsOf(slice) * 4); });
  }
  b.syncWarp();
  b.arriveNamed(b.i32(Places::SumsEmpty), withAdder());
  b.syncNamed(b.i32(Places::SumsFull), withAdder());
  Sums sums = sumsAt(number, slice);
  b.when(isFirst, [&] {
    if (!roundsQueries)
      return addSums(sums, own.before, slice);
    b.when(
        b.isEqual(b.load(b.getI32Type(), visit()), Places::Adds),
        [&] { addSums(sums, own.before, slice); }, [&] { storeResult(sums, slice); });
  });
  b.syncWarp();
  return number;
}

/// For the block of queries at position `turn`, adds the part of dQ from this block of keys, or
/// stores dQ.
void QueryAdder::add(Value turn) {
  Value block = scores.blockAt(turn);
  Place own = placeOf(block);
  Value head = b.mul(b.to32(scores.headNumber()), plan.rowStride / config.blockQueries),
        number = b.add(head, block);
  for (int64_t slice = 0; slice < querySums.slices; ++slice)
    number = addSlice(own, number, slice);
}

void QueryAdder::emit() {
  Value zero = b.i32(0);
  forEachBlock({}, /*unrolls=*/true, [&](Value, ValueRange) {
    return forEachHead({}, [&](Value head, ValueRange) -> CodeBuilder::Carried {
      scores.placeHead(head);
      b.loop(zero, scores.blocks->count, 1, [&](Value turn) { add(turn); });
      return {};
    });
  });
}

void attention::emitQueryAdder(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config,
                               KeyScores &scores) {
  QueryAdder(b, problem, config, scores).emit();
}
