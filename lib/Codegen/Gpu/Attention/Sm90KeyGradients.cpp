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
//       wait until its dO is empty                wait for S;   f·P   (Functions/)
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
// For larger heads, dK and dV of 64 keys do not fit the registers of a warpgroup: with 256 columns,
// each takes 128 registers of a thread's 240. Both warpgroups then share the same 64 keys. Each
// computes P and dS of 32 of the 64 queries. The first one sums dV, and the second one sums dK:
//
//   warpgroup 0                               warpgroup 1
//   Pᵀ, dSᵀ of queries 0 .. 31 to shared      Pᵀ, dSᵀ of queries 32 .. 63 to shared memory
//   release Q                                 release dO
//   dQ of panel 0                             dQ of panel 1
//   dV += Pᵀ · dO                             dK += dSᵀ · Q, of queries 0 .. 31
//   dQ to shared memory                       dQ to shared memory
//   dQ of panel 2;  release dO                dQ of panel 3
//   dQ to shared memory                       dK += dSᵀ · Q, of queries 32 .. 63;  release Q
//
// There is shared memory for the dQ of two panels of 64 columns, whose rounded values replace the
// sums. The bytes for 256 columns, of 232448:
//
//   K, V 65536;  two of Q 65536;  dO 32768;  two of P, dS 32768;  two panels of dQ 32768
//
// dO has one buffer if two do not fit. It is released early, because dV is computed at once. Per 64
// queries and 64 keys, the products take 10 · dim clocks of the tensor cores, and 17 · dim clocks
// of shared memory with all copies.
//
// A block of threads with two blocks of keys processes them one after the other. The producer
// copies K and V of the second block as soon as the consumers have read K and V of the first block.
//
// Contributions to captured tensors are summed by key, by head and by query. The sums by query are
// those of a block of keys: the consumers add the sums of their warps in shared memory. If some
// contributions depend on query and key, another launch of this kernel adds them to tables. It only
// computes S and dP.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Ptx/GpuRows.h"
#include "Sm90KeySums.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

using Places = Sm90KeyPlaces;

namespace {
class KeyConsumer : public Sm90KeySums {
public:
  KeyConsumer(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config, KeyScores &scores,
              Value group, int64_t sharing)
      : Sm90KeySums(b, problem, config, scores, sharing), group(group),
        element(cast<RankedTensorType>(op.getQ().getType()).getElementType()) {
    // Words take half of the registers, which the functions of later elements then have.
    scores.packed = element;
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
  /// The buffers of a block of queries.
  struct Stages {
    Stage queries, douts;
  };
  /// The gradients for all queries of a block, or for some of them.
  struct Gradients {
    /// (f·P)ᵀ and dSᵀ as left factors of products, and the sums of contributions.
    SmallVector<Value> p, ds, columns;
  };
  Sums consumeHead(Value before, Value after, Sums sums);
  Sums processBlock(Value block, const Stages &stages, Sums sums);
  Sums processShared(Value block, const Gradients &both, const Stages &stages, Sums sums);
  Gradients gradients(Value block, const Stages &stages, SmallVector<Value> columns);
  auto norms(int64_t place, int64_t firstQuery, const Stage &stage);
  SmallVector<Value> masked(Value block, TypeRange types,
                            function_ref<SmallVector<Value>(bool)> emit);
  Gradients plainGradientsOf(SmallVector<Value> s, SmallVector<Value> dp, Value block,
                             int64_t firstQuery, const Stages &stages);
  Gradients gradientsOf(ArrayRef<Value> s, ArrayRef<Value> dp, Value block, int64_t firstQuery,
                        const Stages &stages, ArrayRef<Value> drawn, ArrayRef<Value> columns);
  Value gradientsAt(int64_t place, const Stage &stage);
  void shareGradients(int64_t place, ArrayRef<Value> words, const Stage &stage);
  SmallVector<Value> multiplyQueries(const Stage &stage, int64_t slice);
  SmallVector<Value> multiplySums(ArrayRef<Value> sums, const Stages &stages, int64_t firstQuery,
                                  int64_t endQuery);
  Value rowsOfWarp();
  void roundSums(ArrayRef<Value> dq, Value visit, function_ref<Pointer(size_t)> sumsAt);
  void shareSums(ArrayRef<Value> dq);
  SharedFactor rowsOfGroup(int64_t place, int64_t k);

  Value group;
  Type element;
};
} // namespace

/// Returns a factor of products: the rows of K or V that belong to this warpgroup.
SharedFactor KeyConsumer::rowsOfGroup(int64_t place, int64_t k) {
  Value first = sharedAt(place);
  if (!config.sharesKeys)
    first = b.shiftBytes(first, b.mul(group, Sm90Builder::groupRows * Sm90Builder::panelBytes));
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
  bool isOneTile = config.sharesKeys || config.tileQueries == config.blockQueries;
  if (!scores.isEverMasked() || (!scores.isEverFree() && isOneTile))
    return emit(scores.isEverMasked());
  return b.choose(
      scores.blocks->isFree(block), types, [&] { return emit(false); }, [&] { return emit(true); });
}

/// Returns the gradients for one tile of queries: the tile that begins at query `firstQuery` of
/// block `block`.
KeyConsumer::Gradients KeyConsumer::gradientsOf(ArrayRef<Value> s, ArrayRef<Value> dp, Value block,
                                                int64_t firstQuery, const Stages &stages,
                                                ArrayRef<Value> drawn, ArrayRef<Value> columns) {
  auto after = [&](int64_t queries, ArrayRef<Value> rows) {
    bool isWhole = queries % KeyScores::rowQueries == 0;
    if (isWhole)
      shareRowSums(firstQuery + queries - KeyScores::rowQueries, rows);
    // A branch between masked and other blocks also separates the queries. Without it, or with the
    // many values of weight_mod, values of functions for all queries would be in registers at once.
    return !scores.isEverMasked() || scores.mixes() ||
           (isWhole && !config.sharesKeys && !scores.isEverFree());
  };
  auto emit = [&](bool masked) {
    Value first = b.add(b.mul(block, config.blockQueries), firstQuery);
    return scores.emit(s, dp, first, norms(places.lse, firstQuery, stages.queries),
                       norms(places.delta, firstQuery, stages.douts), masked, drawn, columns,
                       after);
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
                                                     const Stages &stages) {
  s.push_back(block);
  s = b.waitForSums(s, 1);
  block = s.pop_back_val();
  SmallVector<Type> types(s.size(), b.getF32Type());
  auto weigh = [&] {
    return masked(block, types, [&](bool masked) {
      Value first = b.add(b.mul(block, config.blockQueries), firstQuery);
      return scores.weigh(s, first, norms(places.lse, firstQuery, stages.queries), masked);
    });
  };
  // A branch, never taken, which prevents ptxas from moving exponentials after the wait for dP.
  SmallVector<Value> p = b.choose(b.isLess(block, b.i32(0)), types, [&] { return s; }, weigh);
  // Ends the basic block, as in Sm90Consumer.cpp: dO has already come.
  b.wait(barrier(Places::DoutFull, stages.douts), stages.douts.parity);
  dp = b.waitForSums(dp);
  SmallVector<Value> ds =
      scores.differentiate(p, dp, norms(places.delta, firstQuery, stages.douts));
  return {toFactor(b, {scores.layout, p}, element), toFactor(b, {scores.layout, ds}, element), {}};
}

/// Returns the gradients for this warpgroup's queries of a block: all of them or, if warpgroups
/// share keys, one tile.
KeyConsumer::Gradients KeyConsumer::gradients(Value block, const Stages &stages,
                                              SmallVector<Value> columns) {
  Value q = tileOfQueries(places.queries, places.queryBytes, stages.queries).base,
        dout = tileOfQueries(places.douts, places.doutBytes, stages.douts).base;
  int64_t rows = config.blockQueries, cols = config.tileQueries, begin = sharing * cols,
          end = config.sharesKeys ? begin + cols : rows, keyDim = paddedDim(shape.dim),
          valueDim = paddedDim(shape.valueDim);
  Gradients all;
  // LLVM moves what follows the products of a tile beyond a loop.
  SmallVector<SmallVector<Value>> drawn;
  for (int64_t first = begin; first < end; first += cols)
    drawn.push_back(scores.draw(b.add(b.mul(block, rows), first)));
  for (int64_t first = begin; first < end; first += cols) {
    auto along = [&](Value tile, int64_t k) {
      return b.factorAlong(b.shiftBytes(tile, first * Sm90Builder::panelBytes), rows, k);
    };
    if (first == begin)
      b.wait(barrier(Places::QueriesFull, stages.queries), stages.queries.parity);
    SmallVector<Value> s =
        b.multiply({}, rowsOfGroup(places.keys, keyDim), along(q, keyDim), cols, element);
    if (first == begin)
      b.wait(barrier(Places::DoutFull, stages.douts), stages.douts.parity);
    SmallVector<Value> dp =
        b.multiply({}, rowsOfGroup(places.values, valueDim), along(dout, valueDim), cols, element);
    Gradients some;
    if (scores.arePlain() && columns.empty()) {
      some = plainGradientsOf(s, dp, block, first, stages);
    } else {
      size_t count = s.size();
      SmallVector<Value> both = std::move(s);
      llvm::append_range(both, dp);
      // Make `block` a result of the wait. Otherwise LLVM moves the loads for later queries to
      // the code for the first queries, and the loaded values do not fit the registers.
      if (first > begin)
        both.push_back(block);
      both = b.waitForSums(both);
      if (first > begin)
        block = both.pop_back_val();
      some = gradientsOf(ArrayRef(both).take_front(count), ArrayRef(both).drop_front(count), block,
                         first, stages, drawn[(first - begin) / cols], columns);
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
Value KeyConsumer::rowsOfWarp() { return b.mul(b.mul(warpOfKeys(), 16), Sm90Builder::panelBytes); }

/// Returns the address of P or dS in shared memory.
Value KeyConsumer::gradientsAt(int64_t place, const Stage &stage) {
  Value index = stage.index;
  // Otherwise LLVM computes the first address of each store before the loops, and the addresses
  // take registers that the values of functions then lack.
  if (!scores.arePlain() && scores.isEverMasked())
    index = b.opaque(index);
  return b.shiftBytes(sharedAt(place), b.mul(index, places.gradientBytes));
}

/// Stores Pᵀ or dSᵀ to shared memory. The products that read this buffer two blocks ago are
/// complete: all warpgroups wait for them before the barrier of the previous block. The new values
/// are visible to the other warpgroups after the next barrier.
void KeyConsumer::shareGradients(int64_t place, ArrayRef<Value> words, const Stage &stage) {
  int64_t cols = config.sharesKeys ? config.tileQueries : config.blockQueries;
  storeWords(b, Layout::mmaSums(16, cols), words,
             {b.shiftBytes(gradientsAt(place, stage), rowsOfWarp()), config.blockKeys()},
             sharing * cols);
}

/// Starts this warpgroup's part of dS · K for the columns of a slice, which uses dS of all
/// warpgroups. Returns nothing if this warpgroup has no columns of the slice.
SmallVector<Value> KeyConsumer::multiplyQueries(const Stage &stage, int64_t slice) {
  int64_t keys = config.blockKeys(), cols = querySums.colsOf(slice, sharing),
          panel = slice * config.groups;
  if (!cols)
    return {};
  Value ownPanel = b.mul(b.add(group, panel), keys * Sm90Builder::panelBytes),
        gradients = gradientsAt(places.gradients, stage), k = sharedAt(places.keys);
  SharedFactor lhs = b.factorAcross(
      querySums.byColumns ? gradients : b.shiftBytes(gradients, ownPanel), keys, keys);
  SharedFactor rhs =
      b.factorAcross(querySums.byColumns ? b.shiftBytes(k, ownPanel) : k, keys, keys);
  return b.multiply({}, lhs, rhs, cols, element);
}

/// Starts to add the products of some queries to dV or dK. P or dS is in shared memory.
SmallVector<Value> KeyConsumer::multiplySums(ArrayRef<Value> sums, const Stages &stages,
                                             int64_t firstQuery, int64_t endQuery) {
  constexpr int64_t elementBytes = 2;
  int64_t rows = config.blockQueries, queries = endQuery - firstQuery;
  Value left = gradientsAt(sumsK ? places.gradients : places.weights, stages.queries),
        right = sumsK ? tileOfQueries(places.queries, places.queryBytes, stages.queries).base
                      : tileOfQueries(places.douts, places.doutBytes, stages.douts).base;
  SharedFactor lhs =
      b.factorAlong(b.shiftBytes(left, firstQuery * elementBytes), config.blockKeys(), queries);
  SharedFactor rhs =
      b.factorAcross(b.shiftBytes(right, firstQuery * Sm90Builder::panelBytes), rows, queries);
  return b.multiply(sums, lhs, rhs, sumsK ? dim : valueDim, element);
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
  if (places.rounded == places.sums) // which all consumers have now read
    b.syncNamed(b.i32(Places::Gradients), consumers());
  SmallVector<Value> scale(2, b.number(op.getScale().convertToDouble()));
  int64_t cols = dq.size() * 2, panel = sharing * config.blockQueries * Sm90Builder::panelBytes;
  storeFragment(
      b, {Layout::mmaSums(16, cols), all}, scale, element,
      {b.shiftBytes(sharedAt(places.rounded + panel), rowsOfWarp()), config.blockQueries});
}

/// Stores dQ to shared memory after the adding warp has read the previous dQ, and then signals the
/// adding warp.
void KeyConsumer::shareSums(ArrayRef<Value> dq) {
  b.syncNamed(b.i32(Places::SumsEmpty), withAdder());
  Value place = b.shiftBytes(sharedAt(places.sums), b.mul(group, querySums.placeOfGroup(1) * 4));
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

/// Adds the products of a block of queries if warpgroups share keys.
KeyConsumer::Sums KeyConsumer::processShared(Value block, const Gradients &both,
                                             const Stages &stages, Sums sums) {
  int64_t rows = config.blockQueries, slices = config.addsToQ ? querySums.slices : 1,
          parts = sumsK ? slices : 1; // of the product for dK or dV
  SmallVector<Value> &own = sumsK ? sums.dk : sums.dv;
  release(sumsK ? barrier(Places::DoutEmpty, stages.douts)
                : barrier(Places::QueriesEmpty, stages.queries));
  Value after = sumsK ? barrier(Places::QueriesEmpty, stages.queries)
                      : barrier(Places::DoutEmpty, stages.douts);
  shareGradients(places.weights, both.p, stages.queries);
  shareGradients(places.gradients, both.ds, stages.queries);
  b.fenceAsync();
  b.syncNamed(b.i32(Places::Gradients), consumers());
  for (int64_t slice = 0; slice < slices; ++slice) {
    SmallVector<Value> dq;
    if (config.addsToQ)
      dq = multiplyQueries(stages.queries, slice);
    if (slice < parts)
      own = multiplySums(own, stages, rows / parts * slice, rows / parts * (slice + 1));
    if (slice == 0)
      storeRowSums(block, sums.columns);
    if (slice == parts) {
      own = b.waitForSums(own, dq.empty() ? 0 : 1);
      release(after);
    }
    if (config.addsToQ)
      shareSums(dq.empty() ? dq : b.waitForSums(dq, slice < parts ? 1 : 0));
  }
  if (parts == slices) {
    own = b.waitForSums(own);
    release(after);
  }
  return sums;
}

KeyConsumer::Sums KeyConsumer::processBlock(Value block, const Stages &stages, Sums sums) {
  int64_t rows = config.blockQueries;
  Gradients both = gradients(block, stages, sums.columns);
  sums.columns = both.columns;
  if (config.tables) {
    release(barrier(Places::QueriesEmpty, stages.queries));
    release(barrier(Places::DoutEmpty, stages.douts));
    return sums;
  }
  if (config.sharesKeys)
    return processShared(block, both, stages, std::move(sums));
  SmallVector<Value> dq;
  const Stage &stage = stages.queries;
  Value q = tileOfQueries(places.queries, places.queryBytes, stage).base,
        dout = tileOfQueries(places.douts, places.doutBytes, stage).base;
  if (config.addsToQ) {
    shareGradients(places.gradients, both.ds, stage);
    b.fenceAsync();
  }
  sums.dv = b.multiply(sums.dv, both.p, b.factorAcross(dout, rows, rows), valueDim, element);
  if (config.addsToQ) {
    b.syncNamed(b.i32(Places::Gradients), consumers());
    dq = multiplyQueries(stage, 0);
    storeRowSums(block, sums.columns);
  } else
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

/// Processes the blocks of queries of a head. Among all blocks that the block of threads visits,
/// these blocks have the numbers `before` to `after` - 1.
KeyConsumer::Sums KeyConsumer::consumeHead(Value before, Value after, Sums sums) {
  sums.columns = scores.emptyColumns();
  sums = sumsOf(b.loop(before, after, 1, flat(sums), [&](Value number, ValueRange state) {
    Value block = scores.blockAt(b.sub(number, before));
    Stage queries = stageOf(number);
    return flat(processBlock(block, {queries, doutStageOf(number, queries)}, sumsOf(state)));
  }));
  storeContributions(sums.columns);
  sums.columns.clear();
  return sums;
}

void KeyConsumer::emit() {
  Value warp = warpOfKeys();
  if (config.tables)
    scores.loadScales();
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
  auto emit = [&](Value group, int64_t sharing) {
    KeyConsumer(b, problem, config, scores, group, sharing).emit();
  };
  if (!config.sharesKeys)
    return emit(group, 0);
  b.when(b.isEqual(group, 0), [&] { emit(b.i32(0), 0); }, [&] { emit(b.i32(1), 1); });
}
