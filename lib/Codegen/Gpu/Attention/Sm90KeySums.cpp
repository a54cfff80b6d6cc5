//===- Sm90KeySums.cpp - Sums of dK and dV with wgmma -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// If query heads are divided into parts, each part adds its dK and dV to the sums of the earlier
// parts in scratch. The last part computes the results from the sums:
//
//   wait until count[block] = part;  dK, dV += sums[block]       (not the first part)
//   sums[block] = dK, dV;  count[block] += 1                     (not the last part)
//
// The sums of contributions for each key are sums of both warpgroups if these share keys. The sums
// for each query are those of a block of keys, which its warps add in shared memory.
//
//===----------------------------------------------------------------------===//

#include "Sm90KeySums.h"
#include "Codegen/Gpu/Ptx/GpuRows.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

using Places = Sm90KeyPlaces;
static constexpr int64_t sumBytes = 4;

void Sm90KeySums::release(Value barrier) {
  b.syncWarp();
  b.when(b.isEqual(b.lane(), 0), [&] { b.arrive(barrier); });
}

SmallVector<Value> Sm90KeySums::flat(const Sums &sums) {
  SmallVector<Value> all(sums.dk);
  llvm::append_range(all, sums.dv);
  llvm::append_range(all, sums.columns);
  return all;
}

Sm90KeySums::Sums Sm90KeySums::sumsOf(ValueRange values) {
  int64_t dk = keyLayout.numRegisters(), dv = valueLayout.numRegisters();
  return {llvm::to_vector(values.take_front(dk)), llvm::to_vector(values.slice(dk, dv)),
          llvm::to_vector(values.drop_front(dk + dv))};
}

void Sm90KeySums::storeContributions(ArrayRef<Value> sums) {
  if (config.tables)
    return;
  storeColumns(sums.take_front(scores.numColumns()));
  scores.storeOthers(sums.drop_front(scores.numColumns()),
                     b.sub(b.warp(), b.i32(Sm90Builder::groupThreads / 32)), consumers() / 32);
}

/// Stores the sums of contributions for each key. If warpgroups share keys, the second one passes
/// its sums to the first one in the memory of P and dS, which no product reads at this point.
void Sm90KeySums::storeColumns(ArrayRef<Value> columns) {
  if (!config.sharesKeys || columns.empty())
    return scores.storeColumns(columns);
  auto sync = [&] { b.syncNamed(b.i32(Places::Gradients), consumers()); };
  Value place = b.shiftBytes(sharedAt(places.weights), b.mul(b.threadOfGroup(), sumBytes));
  auto placeOf = [&](size_t i) -> Pointer {
    return {b.shiftBytes(place, i * sumBytes * Sm90Builder::groupThreads), b.getF32Type(),
            b.constant(0)};
  };
  SmallVector<Value> sums(columns);
  sync();
  for (auto [i, sum] : llvm::enumerate(columns))
    if (sharing == 1)
      b.store(sum, placeOf(i));
  sync();
  for (auto [i, sum] : llvm::enumerate(sums))
    if (sharing == 0)
      sum = b.addf(sum, b.load(b.getF32Type(), placeOf(i)));
  sync();
  if (sharing == 0)
    scores.storeColumns(sums);
}

/// Returns the place of the sum `number` over the keys of a warp, for a query of the block.
Pointer Sm90KeySums::rowSumAt(int64_t number, Value row, Value query) {
  int64_t first = number * config.blockKeys() / 16 * config.blockQueries;
  Value index = b.add(b.add(b.mul(row, config.blockQueries), query), first);
  return {b.shiftBytes(sharedAt(places.rowSums), b.mul(index, 4)), b.getF32Type(), b.constant(0)};
}

/// Stores contributions summed by query, for 32 queries, to shared memory. The eight lanes that
/// have keys of the same queries exchange halves of their eight sums until each has one. The
/// consumers have read the sums of the previous block before its second barrier.
void Sm90KeySums::shareRowSums(int64_t firstQuery, ArrayRef<Value> sums) {
  Value lane = b.lane();
  for (int64_t number = 0; number < scores.numRows(); ++number) {
    SmallVector<Value> own(sums.slice(number * KeyScores::sumsOfRow, KeyScores::sumsOfRow));
    for (int64_t bits : {16, 8, 4}) {
      Value isUpper = b.isEqual(b.rem(b.div(lane, bits), 2), 1);
      SmallVector<Value> halves;
      for (size_t i = 0, half = own.size() / 2; i < half; ++i) {
        Value lower = own[i], upper = own[half + i];
        halves.push_back(b.addf(b.select(isUpper, upper, lower),
                                b.exchange(b.select(isUpper, lower, upper), bits)));
      }
      own = halves;
    }
    Value row = b.rowOfLane(),
          query = b.add(b.add(b.mul(b.div(row, 2), 8), b.rem(row, 2)), b.colOfLane());
    b.store(own[0], rowSumAt(number, warpOfKeys(), b.add(query, firstQuery)));
  }
}

/// Adds the sums of all warps for each query of a block, and stores the results to scratch.
void Sm90KeySums::storeRowSums(Value block, SmallVector<Value> &columns) {
  size_t count = scores.numRows();
  if (!count || sharing == 1)
    return;
  Value own = b.sub(b.thread(), b.i32(Sm90Builder::groupThreads));
  SmallVector<Value> largest(ArrayRef(columns).take_back(count));
  auto store = [&] {
    Value query = b.add(b.mul(block, config.blockQueries), own);
    SmallVector<Value> all;
    for (auto [number, most] : llvm::enumerate(largest)) {
      Value sum;
      for (int64_t warp = 0; warp < config.blockKeys() / 16; ++warp) {
        Value part = b.load(b.getF32Type(), rowSumAt(number, b.i32(warp), own));
        sum = sum ? b.addf(sum, part) : part;
      }
      all.push_back(scores.storeRow(number, query, sum, most));
    }
    return all;
  };
  largest = b.choose(b.isLess(own, b.i32(config.blockQueries)), ValueRange(largest).getTypes(),
                     store, [&] { return largest; });
  llvm::copy(largest, columns.end() - count);
}

void Sm90KeySums::storeResults(const Sums &sums) {
  ArrayRef<Value> numbers = scores.numbers;
  SmallVector<Value> scale(numbers.size(), b.number(op.getScale().convertToDouble())),
      one(numbers.size());
  auto rowsOf = [&](const HeadTensor &out) { return slabOf(b, out, scores.batch, scores.kvHead); };
  if (HeadTensor out = headTensorOf(b, kernel, op.getDk()); out.place.base && sumsK)
    storeRows(b, {keyLayout, sums.dk}, numbers, scale, rowsOf(out));
  if (HeadTensor out = headTensorOf(b, kernel, op.getDv()); out.place.base && sumsV)
    storeRows(b, {valueLayout, sums.dv}, numbers, one, rowsOf(out));
}

/// Returns the number of this block of keys, counted over all heads and batches.
Value Sm90KeySums::indexOfKeys() {
  Value head = b.add(b.mul(scores.batch, shape.kvHeads), scores.kvHead);
  return b.add(b.mul(head, scores.keyBlocks()), b.to64(b.div(scores.firstKey, config.blockKeys())));
}

/// Returns the address of the first sum of this thread for the block of keys `index`. The sums are
/// stored in groups of four. The distance between two groups of a thread is 4 · threadsOfKeys()
/// elements. If warpgroups share keys, the sums of dV come first.
Pointer Sm90KeySums::sumsOfThread(Value index) {
  int64_t keyDim = paddedDim(shape.dim), valueDim = paddedDim(shape.valueDim),
          first = plan.keySums + (sharing ? config.blockKeys() * valueDim : 0);
  Value thread = b.sub(b.thread(), b.i32((1 + sharing) * Sm90Builder::groupThreads));
  Value place = b.add(b.add(b.mul(index, config.blockKeys() * (keyDim + valueDim)), first),
                      b.to64(b.mul(thread, 4)));
  return b.shift(b.scratch(b.getF32Type()), place);
}

/// Adds the sums of the earlier parts to the sums of this part.
Sm90KeySums::Sums Sm90KeySums::addParts(const Sums &sums) {
  SmallVector<Value> own = flat(sums);
  int64_t count = own.size();
  Value index = indexOfKeys();
  auto addOthers = [&] {
    Value added = b.address(b.shift(b.scratch(b.getI32Type()), b.add(index, plan.addedParts)));
    b.when(b.isEqual(b.thread(), Sm90Builder::groupThreads), [&] { b.waitForValue(added, part); });
    b.syncNamed(b.i32(Places::Gradients), consumers());
    Pointer from = sumsOfThread(index);
    SmallVector<Value> all;
    for (int64_t i = 0; i < count; i += 4) {
      SmallVector<Value> others = loadRow(b, b.shift(from, b.constant(i * threadsOfKeys())), 4, 4);
      for (auto [other, value] : llvm::zip(others, ArrayRef(own).slice(i, 4)))
        all.push_back(b.addf(other, value));
    }
    return all;
  };
  return sumsOf(
      b.choose(b.isEqual(part, 0), ValueRange(own).getTypes(), [&] { return own; }, addOthers));
}

/// Stores the sums, which the next part reads, and increments the count of parts.
void Sm90KeySums::storePart(const Sums &sums) {
  SmallVector<Value> own = flat(sums);
  int64_t count = own.size();
  Value index = indexOfKeys();
  Pointer to = sumsOfThread(index);
  for (int64_t i = 0; i < count; i += 4)
    storeRow(b, ArrayRef(own).slice(i, 4), b.shift(to, b.constant(i * threadsOfKeys())), 4);
  b.syncNamed(b.i32(Places::Gradients), consumers());
  b.when(b.isEqual(b.thread(), Sm90Builder::groupThreads), [&] {
    b.increment(b.address(b.shift(b.scratch(b.getI32Type()), b.add(index, plan.addedParts))));
  });
}

void Sm90KeySums::store(const Sums &sums) {
  if (!part)
    return storeResults(sums);
  Sums all = addParts(sums);
  b.when(
      b.isEqual(part, plan.order.parts - 1), [&] { storeResults(all); }, [&] { storePart(all); });
}
