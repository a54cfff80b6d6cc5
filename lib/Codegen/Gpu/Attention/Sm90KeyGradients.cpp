//===- Sm90KeyGradients.cpp - dK, dV and dQ with wgmma ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A block of threads owns 128 keys of one kv head. One lane of warpgroup 0 is the producer. Two
// warpgroups with 64 keys each are consumers. There are two buffers for queries and for dS. They
// form rings, which continue from one head to the next:
//
//   producer                                  consumers
//   copy K, V                                 wait for K, V
//   for each query head that shares K, V      for each query head
//     for each block i of queries               for each block i
//       wait until its Q is empty                 wait for Q;   start Sᵀ = K · Qᵀ
//       copy Q[i], lse[i]                         wait for dO;  start dPᵀ = V · dOᵀ
//       wait until its dO is empty                wait for S;   f·P   (ScoreGradients.cpp)
//       copy dO[i], δ[i]                          wait for dP;  dSᵀ to shared memory
//                                                 dV += (f·P)ᵀ · dO;  release dO
//                                                 warpgroup's part of dS · K to shared memory,
//                                                   in the last block of keys with sums: dQ
//                                                 dK += dSᵀ · Q;  release Q
//                                             scale · dK, dV
//
// The rows of Sᵀ and dPᵀ are keys. Therefore Pᵀ and dSᵀ are already in the registers in which the
// later products expect their left factors. With score_mod or weight_mod, f·P is computed after
// both products. To compute dQ, both warpgroups read dSᵀ of all keys from shared memory. In this
// product, the rows must be queries, so the matrix descriptors transpose dSᵀ. Each row of dK and dV
// is summed by only one block of threads, in the order of heads and queries. All blocks of threads
// of a head add to each row of dQ, in a fixed order (Sm90KeyProducer.cpp).
//
// If query heads are divided into parts, each part adds its dK and dV to the sums of the earlier
// parts in scratch. The last part computes the results from the sums:
//
//   wait until count[block] = part;  dK, dV += sums[block]       (not the first part)
//   sums[block] = dK, dV;  count[block] += 1                     (not the last part)
//
// A block of threads with two blocks of keys processes them one after the other. The producer
// copies K and V of the second block as soon as the consumers have read K and V of the first block.
//
// If there are contributions to captured tensors that are not summed by key, dQ is computed by
// Sm80QueryGradients.cpp.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Ptx/GpuRows.h"
#include "Sm90Backward.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

using Places = Sm90KeyPlaces;

namespace {
class KeyConsumer : public Sm90KeyRole {
public:
  KeyConsumer(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config, KeyScores &scores,
              Value group)
      : Sm90KeyRole(b, problem, config, scores), group(group),
        element(cast<RankedTensorType>(op.getQ().getType()).getElementType()),
        dim(paddedDim(shape.dim)), valueDim(paddedDim(shape.valueDim)),
        keyLayout(Layout::mmaSums(16, dim)), valueLayout(Layout::mmaSums(16, valueDim)) {
    // Hide from ptxas that the address of the barriers is a constant; see Sm90Consumer.cpp. All
    // other addresses follow from the hidden one, because a second base takes a register that some
    // kernels lack.
    Value first = sharedAt(places.barriers);
    Value place = b.uniform(LLVM::PtrToIntOp::create(b, b.loc, b.getI32Type(), first));
    base =
        b.shiftBytes(LLVM::IntToPtrOp::create(b, b.loc, base.getType(), place), -places.barriers);
  }
  void emit();

private:
  struct Sums {
    SmallVector<Value> dk, dv, columns; ///< `columns` holds the sums of contributions for each key
  };
  Sums consumeHead(Value before, Value after, Sums sums);
  Sums processBlock(Value block, const Stage &stage, Sums sums);
  /// The gradients for all queries of a block, or for some of them.
  struct Gradients {
    /// (f·P)ᵀ and dSᵀ as left factors of products, and for each key the sums of contributions.
    SmallVector<Value> p, ds, columns;
  };
  Gradients gradients(Value block, const Stage &stage, SmallVector<Value> columns);
  auto norms(int64_t place, int64_t firstQuery, const Stage &stage);
  SmallVector<Value> masked(Value block, TypeRange types,
                            function_ref<SmallVector<Value>(bool)> emit);
  Gradients plainGradientsOf(SmallVector<Value> s, SmallVector<Value> dp, Value block,
                             int64_t firstQuery, const Stage &stage);
  Gradients gradientsOf(ArrayRef<Value> s, ArrayRef<Value> dp, Value block, int64_t firstQuery,
                        const Stage &stage, ArrayRef<Value> columns);
  void shareGradients(ArrayRef<Value> ds, const Stage &stage);
  SmallVector<Value> multiplyQueries(const Stage &stage);
  Value rowsOfWarp();
  void roundSums(ArrayRef<Value> dq, Value visit, function_ref<Pointer(size_t)> sumsAt);
  void shareSums(ArrayRef<Value> dq);
  void release(Value barrier);
  SharedFactor rowsOfGroup(int64_t place, int64_t k);
  SmallVector<Value> flat(const Sums &sums);
  Sums sumsOf(ValueRange values);
  Value indexOfKeys();
  Sums addParts(const Sums &sums);
  void storePart(const Sums &sums);
  void storeResults(const Sums &sums);
  void store(const Sums &sums);

  Value group;
  Type element;
  int64_t dim, valueDim;
  Layout keyLayout, valueLayout;
};
} // namespace

/// Signals that this warp no longer needs the contents of a buffer.
void KeyConsumer::release(Value barrier) {
  b.syncWarp();
  b.when(b.isEqual(b.lane(), 0), [&] { b.arrive(barrier); });
}

/// Returns a factor of products: the rows of K or V that belong to this warpgroup.
SharedFactor KeyConsumer::rowsOfGroup(int64_t place, int64_t k) {
  Value first =
      b.shiftBytes(sharedAt(place), b.mul(group, Sm90Builder::groupRows * Sm90Builder::panelBytes));
  return b.factorAlong(first, config.blockKeys(), k);
}

/// Returns a function that loads lse or δ, at `place` in shared memory, of a query by its column.
auto KeyConsumer::norms(int64_t place, int64_t firstQuery, const Stage &stage) {
  Value own = b.shiftBytes(sharedAt(place), b.add(b.mul(stage.index, places.normsBytes),
                                                  b.mul(b.colOfLane(), Places::normBytes)));
  return [this, own, firstQuery](int64_t at) -> Value {
    return LLVM::LoadOp::create(b, b.loc, b.getF32Type(),
                                b.shiftBytes(own, (firstQuery + at) * Places::normBytes));
  };
}

/// Emits emit(masked), with a branch if some blocks of queries have masked elements and others
/// have none.
SmallVector<Value> KeyConsumer::masked(Value block, TypeRange types,
                                       function_ref<SmallVector<Value>(bool)> emit) {
  // If a block has several tiles, the code has a branch for each tile. The branch prevents LLVM
  // from moving the loads of later tiles before the first tile.
  bool isOneTile = config.tileQueries == config.blockQueries;
  if (!scores.isEverMasked() || (!scores.isEverFree() && isOneTile))
    return emit(scores.isEverMasked());
  return b.choose(
      scores.blocks->isFree(block), types, [&] { return emit(false); }, [&] { return emit(true); });
}

/// Returns the gradients for one tile of queries: the tile that begins at query `firstQuery` of
/// block `block`.
KeyConsumer::Gradients KeyConsumer::gradientsOf(ArrayRef<Value> s, ArrayRef<Value> dp, Value block,
                                                int64_t firstQuery, const Stage &stage,
                                                ArrayRef<Value> columns) {
  auto emit = [&](bool masked) {
    Value first = b.add(b.mul(block, config.blockQueries), firstQuery);
    SmallVector<Value> all = scores.emit(s, dp, first, norms(places.lse, firstQuery, stage),
                                         norms(places.delta, firstQuery, stage), masked, columns);
    auto words = toFactor(
        b, {scores.layout, SmallVector<Value>(ArrayRef(all).take_front(2 * s.size()))}, element);
    words.append(all.end() - columns.size(), all.end());
    return words;
  };
  SmallVector<Type> types(s.size(), b.getI32Type());
  types.append(columns.size(), b.getF32Type());
  SmallVector<Value> all = masked(block, types, emit);
  auto from = [&](size_t first, size_t count) {
    return SmallVector<Value>(ArrayRef(all).slice(first, count));
  };
  return {from(0, s.size() / 2), from(s.size() / 2, s.size() / 2), from(s.size(), columns.size())};
}

/// Returns the gradients of plain scores. The product dp runs while P is computed.
KeyConsumer::Gradients KeyConsumer::plainGradientsOf(SmallVector<Value> s, SmallVector<Value> dp,
                                                     Value block, int64_t firstQuery,
                                                     const Stage &stage) {
  s.push_back(block);
  s = b.waitForSums(s, 1);
  block = s.pop_back_val();
  SmallVector<Type> types(s.size(), b.getF32Type());
  auto weigh = [&] {
    return masked(block, types, [&](bool masked) {
      Value first = b.add(b.mul(block, config.blockQueries), firstQuery);
      return scores.weigh(s, first, norms(places.lse, firstQuery, stage), masked);
    });
  };
  // A branch, never taken, which prevents ptxas from moving exponentials after the wait for dP.
  SmallVector<Value> p = b.choose(b.isLess(block, b.i32(0)), types, [&] { return s; }, weigh);
  // Ends the basic block, as in Sm90Consumer.cpp: dO has already come.
  b.wait(barrier(Places::DoutFull, stage), stage.parity);
  dp = b.waitForSums(dp);
  SmallVector<Value> ds = scores.differentiate(p, dp, norms(places.delta, firstQuery, stage));
  return {toFactor(b, {scores.layout, p}, element), toFactor(b, {scores.layout, ds}, element), {}};
}

KeyConsumer::Gradients KeyConsumer::gradients(Value block, const Stage &stage,
                                              SmallVector<Value> columns) {
  Value q = tileOfQueries(places.queries, places.queryBytes, stage).base,
        dout = tileOfQueries(places.douts, places.doutBytes, stage).base;
  int64_t rows = config.blockQueries, cols = config.tileQueries;
  Gradients all;
  for (int64_t first = 0; first < rows; first += cols) {
    auto along = [&](Value tile, int64_t k) {
      return b.factorAlong(b.shiftBytes(tile, first * Sm90Builder::panelBytes), rows, k);
    };
    if (first == 0)
      b.wait(barrier(Places::QueriesFull, stage), stage.parity);
    SmallVector<Value> s =
        b.multiply({}, rowsOfGroup(places.keys, dim), along(q, dim), cols, element);
    if (first == 0)
      b.wait(barrier(Places::DoutFull, stage), stage.parity);
    SmallVector<Value> dp =
        b.multiply({}, rowsOfGroup(places.values, valueDim), along(dout, valueDim), cols, element);
    Gradients some;
    if (scores.arePlain() && columns.empty()) {
      some = plainGradientsOf(s, dp, block, first, stage);
    } else {
      size_t count = s.size();
      SmallVector<Value> both = std::move(s);
      llvm::append_range(both, dp);
      // Make `block` a result of the wait. Otherwise LLVM moves the loads for later queries to
      // the code for the first queries, and the loaded values do not fit the registers.
      if (first > 0)
        both.push_back(block);
      both = b.waitForSums(both);
      if (first > 0)
        block = both.pop_back_val();
      some = gradientsOf(ArrayRef(both).take_front(count), ArrayRef(both).drop_front(count), block,
                         first, stage, columns);
      columns = some.columns;
    }
    llvm::append_range(all.p, some.p);
    llvm::append_range(all.ds, some.ds);
  }
  all.columns = columns;
  return all;
}

/// Returns the offset of the 16 rows of this warp in a panel, or of its rows of the warpgroup's
/// panel in a tile of 64 rows.
Value KeyConsumer::rowsOfWarp() {
  Value row = b.mul(b.sub(b.warp(), b.i32(Sm90Builder::groupThreads / 32)), 16);
  return b.mul(row, Sm90Builder::panelBytes);
}

/// Stores dSᵀ to shared memory. The products that read this buffer two blocks ago are complete: all
/// warpgroups wait for them before the barrier of the previous block. The new dSᵀ is visible to the
/// other warpgroups after the next barrier.
void KeyConsumer::shareGradients(ArrayRef<Value> ds, const Stage &stage) {
  Value first = b.shiftBytes(sharedAt(places.gradients), b.mul(stage.index, places.gradientBytes));
  first = b.shiftBytes(first, rowsOfWarp());
  storeWords(b, Layout::mmaSums(16, config.blockQueries), ds, {first, config.blockKeys()});
  b.fenceAsync();
}

/// Starts this warpgroup's part of dS · K, which uses dS of all warpgroups.
SmallVector<Value> KeyConsumer::multiplyQueries(const Stage &stage) {
  b.syncNamed(b.i32(Places::Gradients), consumers());
  int64_t keys = config.blockKeys();
  Value ownPanel = b.mul(group, keys * Sm90Builder::panelBytes),
        gradients =
            b.shiftBytes(sharedAt(places.gradients), b.mul(stage.index, places.gradientBytes)),
        k = sharedAt(places.keys);
  SharedFactor lhs = b.factorAcross(
      querySums.byColumns ? gradients : b.shiftBytes(gradients, ownPanel), keys, keys);
  SharedFactor rhs =
      b.factorAcross(querySums.byColumns ? b.shiftBytes(k, ownPanel) : k, keys, keys);
  return b.multiply({}, lhs, rhs, querySums.cols, element);
}

/// Adds the sums of the earlier blocks of keys to dQ, if there are any, and stores the result in
/// the type of dQ to shared memory. `sumsAt` returns the place of four sums in shared memory.
void KeyConsumer::roundSums(ArrayRef<Value> dq, Value visit, function_ref<Pointer(size_t)> sumsAt) {
  SmallVector<Value> all = b.choose(
      b.isEqual(visit, Places::RoundsSums), ValueRange(dq).getTypes(),
      [&] {
        SmallVector<Value> all;
        for (size_t i = 0; i < dq.size(); i += 4)
          for (auto [sum, own] : llvm::zip(loadRow(b, sumsAt(i), 4, 4), dq.slice(i, 4)))
            all.push_back(b.addf(sum, own));
        return all;
      },
      [&] { return SmallVector<Value>(dq); });
  SmallVector<Value> scale(2, b.number(op.getScale().convertToDouble()));
  storeFragment(b, {Layout::mmaSums(16, querySums.cols), all}, scale, element,
                {b.shiftBytes(sharedAt(places.rounded), rowsOfWarp()), config.blockQueries});
}

/// Stores dQ to shared memory after the adding warp has read the previous dQ, and then signals the
/// adding warp.
void KeyConsumer::shareSums(ArrayRef<Value> dq) {
  b.syncNamed(b.i32(Places::SumsEmpty), withAdder());
  Value place = b.shiftBytes(sharedAt(places.sums), b.mul(group, querySums.floatsOfGroup() * 4));
  place = b.shiftBytes(place, b.mul(b.threadOfGroup(), 16));
  auto sumsAt = [&](size_t i) -> Pointer {
    return {b.shiftBytes(place, i * 4 * Sm90Builder::groupThreads), b.getF32Type(), b.constant(0)};
  };
  auto store = [&] {
    for (size_t i = 0; i < dq.size(); i += 4)
      storeRow(b, dq.slice(i, 4), sumsAt(i), 4);
  };
  if (roundsQueries) {
    Value visit = b.load(b.getI32Type(), {sharedAt(places.visit), b.getI32Type(), b.constant(0)});
    b.when(b.isEqual(visit, Places::Adds), store, [&] { roundSums(dq, visit, sumsAt); });
  } else {
    store();
  }
  b.fenceAsync();
  b.arriveNamed(b.i32(Places::SumsFull), withAdder());
}

KeyConsumer::Sums KeyConsumer::processBlock(Value block, const Stage &stage, Sums sums) {
  int64_t rows = config.blockQueries;
  Gradients both = gradients(block, stage, sums.columns);
  sums.columns = both.columns;
  SmallVector<Value> dq;
  Value q = tileOfQueries(places.queries, places.queryBytes, stage).base,
        dout = tileOfQueries(places.douts, places.doutBytes, stage).base;
  if (config.addsToQ)
    shareGradients(both.ds, stage);
  sums.dv = b.multiply(sums.dv, both.p, b.factorAcross(dout, rows, rows), valueDim, element);
  if (config.addsToQ)
    dq = multiplyQueries(stage);
  else
    sums.dk = b.multiply(sums.dk, both.ds, b.factorAcross(q, rows, rows), dim, element);
  sums.dv = b.waitForSums(sums.dv, 1);
  release(barrier(Places::DoutEmpty, stage));
  if (config.addsToQ) {
    sums.dk = b.multiply(sums.dk, both.ds, b.factorAcross(q, rows, rows), dim, element);
    shareSums(b.waitForSums(dq, 1));
  }
  sums.dk = b.waitForSums(sums.dk);
  release(barrier(Places::QueriesEmpty, stage));
  return sums;
}

SmallVector<Value> KeyConsumer::flat(const Sums &sums) {
  SmallVector<Value> all(sums.dk);
  llvm::append_range(all, sums.dv);
  llvm::append_range(all, sums.columns);
  return all;
}

KeyConsumer::Sums KeyConsumer::sumsOf(ValueRange values) {
  int64_t dk = keyLayout.numRegisters(), dv = valueLayout.numRegisters();
  return {llvm::to_vector(values.take_front(dk)), llvm::to_vector(values.slice(dk, dv)),
          llvm::to_vector(values.drop_front(dk + dv))};
}

/// Processes the blocks of queries of a head. Among all blocks that the block of threads visits,
/// these blocks have the numbers `before` to `after` - 1.
KeyConsumer::Sums KeyConsumer::consumeHead(Value before, Value after, Sums sums) {
  sums.columns = scores.emptyColumns();
  sums = sumsOf(b.loop(before, after, 1, flat(sums), [&](Value number, ValueRange state) {
    Value block = scores.blockAt(b.sub(number, before));
    return flat(processBlock(block, stageOf(number), sumsOf(state)));
  }));
  scores.storeColumns(sums.columns);
  sums.columns.clear();
  return sums;
}

void KeyConsumer::storeResults(const Sums &sums) {
  ArrayRef<Value> numbers = scores.numbers;
  SmallVector<Value> scale(numbers.size(), b.number(op.getScale().convertToDouble())),
      one(numbers.size());
  auto rowsOf = [&](const Pointer &out, int64_t cols) {
    return slabOf(b, out, scores.batch, scores.kvHead, shape.kvHeads, shape.cols, cols);
  };
  if (Pointer out = b.destination(kernel, op.getDk()); out.base)
    storeRows(b, {keyLayout, sums.dk}, numbers, scale, rowsOf(out, shape.dim));
  if (Pointer out = b.destination(kernel, op.getDv()); out.base)
    storeRows(b, {valueLayout, sums.dv}, numbers, one, rowsOf(out, shape.valueDim));
}

/// Returns the number of this block of keys, counted over all heads and batches.
Value KeyConsumer::indexOfKeys() {
  Value head = b.add(b.mul(scores.batch, shape.kvHeads), scores.kvHead);
  return b.add(b.mul(head, scores.keyBlocks()), b.to64(b.div(scores.firstKey, config.blockKeys())));
}

/// Returns the address of the first sum of a consuming thread. The thread has `sums` sums, which
/// are stored in groups of four. The distance between two groups of a thread is 4 · threads
/// elements.
static Pointer sumsOfThread(Sm90Builder &b, const Sm80Backward &plan, Value index, int64_t sums,
                            int64_t threads) {
  Value thread = b.sub(b.thread(), b.i32(Sm90Builder::groupThreads));
  Value place = b.add(b.add(b.mul(index, sums * threads), plan.keySums), b.to64(b.mul(thread, 4)));
  return b.shift(b.scratch(b.getF32Type()), place);
}

/// Adds the sums of the earlier parts to the sums of this part.
KeyConsumer::Sums KeyConsumer::addParts(const Sums &sums) {
  SmallVector<Value> own = flat(sums);
  int64_t count = own.size();
  Value index = indexOfKeys();
  auto addOthers = [&] {
    Value added = b.address(b.shift(b.scratch(b.getI32Type()), b.add(index, plan.addedParts)));
    b.when(b.isEqual(b.thread(), Sm90Builder::groupThreads), [&] { b.waitForValue(added, part); });
    b.syncNamed(b.i32(Places::Gradients), consumers());
    Pointer from = sumsOfThread(b, plan, index, count, consumers());
    SmallVector<Value> all;
    for (int64_t i = 0; i < count; i += 4) {
      SmallVector<Value> others = loadRow(b, b.shift(from, b.constant(i * consumers())), 4, 4);
      for (auto [other, value] : llvm::zip(others, ArrayRef(own).slice(i, 4)))
        all.push_back(b.addf(other, value));
    }
    return all;
  };
  return sumsOf(
      b.choose(b.isEqual(part, 0), ValueRange(own).getTypes(), [&] { return own; }, addOthers));
}

/// Stores the sums, which the next part reads, and increments the count of parts.
void KeyConsumer::storePart(const Sums &sums) {
  SmallVector<Value> own = flat(sums);
  int64_t count = own.size();
  Value index = indexOfKeys();
  Pointer to = sumsOfThread(b, plan, index, count, consumers());
  for (int64_t i = 0; i < count; i += 4)
    storeRow(b, ArrayRef(own).slice(i, 4), b.shift(to, b.constant(i * consumers())), 4);
  b.syncNamed(b.i32(Places::Gradients), consumers());
  b.when(b.isEqual(b.thread(), Sm90Builder::groupThreads), [&] {
    b.increment(b.address(b.shift(b.scratch(b.getI32Type()), b.add(index, plan.addedParts))));
  });
}

void KeyConsumer::store(const Sums &sums) {
  if (!part)
    return storeResults(sums);
  Sums all = addParts(sums);
  b.when(
      b.isEqual(part, plan.order.parts - 1), [&] { storeResults(all); }, [&] { storePart(all); });
}

void KeyConsumer::emit() {
  Value warp = b.sub(b.warp(), b.i32(Sm90Builder::groupThreads / 32));
  forEachBlock(b.i32(0), /*unrolls=*/false,
               [&](Value turn, ValueRange before) -> CodeBuilder::Carried {
                 scores.placeLane(warp);
                 SmallVector<Value> state(keyLayout.numRegisters() + valueLayout.numRegisters(),
                                          b.number(0));
                 state.push_back(before[0]);
                 b.wait(barrier(Places::KeysFull), turn);
                 state = forEachHead(state, [&](Value head, ValueRange state) {
                   scores.placeHead(head);
                   Value after = b.add(state.back(), scores.blocks->count);
                   SmallVector<Value> next =
                       flat(consumeHead(state.back(), after, sumsOf(state.drop_back())));
                   next.push_back(after);
                   return next;
                 });
                 if (plan.order.mostTurns() > 1) {
                   release(barrier(Places::KeysEmpty));
                   // Compute the block's position again, because registers do not hold it during
                   // the loop.
                   place(b.blockAgain(), turn);
                   scores.placeLane(warp);
                 }
                 store(sumsOf(ValueRange(state).drop_back()));
                 return {state.back()};
               });
}

void attention::emitKeyConsumer(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config,
                                KeyScores &scores, Value group) {
  KeyConsumer(b, problem, config, scores, group).emit();
}
