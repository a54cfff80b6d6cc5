//===- Sm90KeyGradients.cpp - dK and dV by wgmma ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A block of threads has 128 keys of one kv head. Warpgroup 0 produces: one lane of it copies. Two
// warpgroups with 64 keys each consume. Buffers of queries are two, and go round from head to head:
//
//   producer                                  consumers
//   copy K, V                                 wait for K, V
//   for each query head that shares them      for each query head
//     for each block i of queries               for each block i
//       wait until its Q is empty                 wait for Q;   Sᵀ = K · Qᵀ
//       copy Q[i], lse[i]                         wait for dO;  dPᵀ = V · dOᵀ
//       wait until its dO is empty                f·P, dS: ScoreGradients.cpp
//       copy dO[i], δ[i]                          dV += (f·P)ᵀ · dO;  dO is empty
//                                                 dK += dSᵀ · Q;  Q is empty
//                                             scale · dK, dV
//
// Keys are the rows of Sᵀ and dPᵀ, so that Pᵀ and dSᵀ stand in registers as the left factors of the products
// behind. As in Sm80KeyGradients.cpp, one block adds to a row, in the order of heads and queries.
//
// lse and δ lie in scratch, that of each head from a multiple of a block of queries on: what is copied is aligned, and
// queries that do not exist have lse = inf.
//
//===----------------------------------------------------------------------===//

#include "Sm90Backward.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static constexpr int64_t stages = 2, normBytes = 4;

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

namespace {
/// Where things lie, in bytes.
struct Places {
  /// Barriers: one of a kind, or one for each stage.
  enum Barrier { KeysFull = 0, QueriesFull = 1, QueriesEmpty = 3, DoutFull = 5, DoutEmpty = 7, NumBarriers = 9 };

  Places(const Sm90Keys &config, const Shape &shape)
      : queryBytes(tileBytes(config.blockQueries, shape.dim)), doutBytes(tileBytes(config.blockQueries, shape.valueDim)),
        normsBytes(config.blockQueries * normBytes), values(tileBytes(config.blockKeys(), shape.dim)),
        queries(values + tileBytes(config.blockKeys(), shape.valueDim)), douts(queries + stages * queryBytes),
        lse(douts + stages * doutBytes), delta(lse + stages * normsBytes), barriers(delta + stages * normsBytes) {}

  int64_t queryBytes, doutBytes, normsBytes; ///< of one stage
  int64_t keys = 0, values, queries, douts, lse, delta, barriers;
  int64_t bytes() const { return barriers + NumBarriers * Sm90Builder::barrierBytes; }
};

/// A buffer of queries; parity is that of the phase that fills it.
struct Stage {
  Value index, parity;
};
} // namespace

static int64_t padded(int64_t dim) { return Sm80Tiles::paddedCols(dim); }

Sm80Needs attention::sm90KeyNeeds(const Sm90Keys &config, const Shape &shape) {
  int64_t registers = config.blockQueries + padded(shape.dim) / 2 + padded(shape.valueDim) / 2 + 32;
  return {registers, Places(config, shape).bytes()};
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

namespace {
class Sm90KeyGradients {
public:
  Sm90KeyGradients(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config, Type element)
      : b(b), plan(problem.plan), config(config), shape(problem.shape), op(problem.op), kernel(problem.kernel), element(element),
        scores(b, problem, config.blockKeys(), 16, config.blockQueries, /*wantsK=*/true), places(config, shape),
        keyLayout(Layout::mmaSums(16, padded(shape.dim))), valueLayout(Layout::mmaSums(16, padded(shape.valueDim))) {}
  void emit();

private:
  struct Sums {
    SmallVector<Value> dk, dv, columns; ///< the last: of what each key of this lane contributes
  };
  void initBarriers();
  Value barrier(Places::Barrier which, const Stage &stage = {});
  Stage stageOf(Value number) { return {b.rem(number, stages), b.rem(b.div(number, stages), 2)}; }
  PanelTile tileAt(int64_t place, int64_t rows) { return {b.sharedAt(place), rows}; }
  PanelTile tileAt(int64_t place, int64_t bytes, const Stage &stage) {
    return {b.shiftBytes(b.sharedAt(place), b.mul(stage.index, bytes)), config.blockQueries};
  }
  void produce();
  void copyBlock(Value turn, Value number);
  void copyNorms(int64_t place, int64_t from, Value firstRow, const Stage &stage, Value barrier);
  void consume(Value group);
  Sums consumeHead(Value before, Sums sums);
  Sums turn(Value number, const Stage &stage, Sums sums);
  SmallVector<Value> gradientsOf(ArrayRef<Value> s, ArrayRef<Value> dp, Value block, const Stage &stage, ArrayRef<Value> columns);
  void release(Value barrier);
  SharedFactor rowsOfGroup(int64_t place, int64_t dim);
  SmallVector<Value> flat(const Sums &sums);
  Sums sumsOf(ValueRange values);
  void store(const Sums &sums);

  Sm90Builder &b;
  const Sm80Backward &plan;
  const Sm90Keys config;
  const Shape &shape;
  AttentionGradOp op;
  func::FuncOp kernel;
  Type element;
  KeyScores scores;
  Places places;
  Layout keyLayout, valueLayout;
  Value group; ///< of those that consume
};
} // namespace

Value Sm90KeyGradients::barrier(Places::Barrier which, const Stage &stage) {
  Value first = b.sharedAt(places.barriers + which * Sm90Builder::barrierBytes);
  return stage.index ? b.shiftBytes(first, b.mul(stage.index, Sm90Builder::barrierBytes)) : first;
}

void Sm90KeyGradients::initBarriers() {
  b.when(b.isEqual(b.thread(), 0), [&] {
    auto init = [&](int64_t which, int64_t count) { b.initBarrier(b.sharedAt(places.barriers + which * Sm90Builder::barrierBytes), count); };
    int64_t warps = config.groups * Sm90Builder::groupThreads / 32;
    init(Places::KeysFull, 1);
    for (int64_t i = 0; i < stages; ++i) {
      init(Places::QueriesFull + i, 1);
      init(Places::DoutFull + i, 1);
      init(Places::QueriesEmpty + i, warps);
      init(Places::DoutEmpty + i, warps);
    }
    b.fenceBarriers();
  });
  b.barrier();
}

//===----------------------------------------------------------------------===//
// Producer
//===----------------------------------------------------------------------===//

void Sm90KeyGradients::copyNorms(int64_t place, int64_t from, Value firstRow, const Stage &stage, Value barrier) {
  Value row = b.add(b.mul(scores.headNumber(), plan.rowStride), b.to64(firstRow));
  Value target = b.shiftBytes(b.sharedAt(place), b.mul(stage.index, places.normsBytes));
  b.copyBulk(target, b.address(b.shift(b.scratch(b.getF32Type()), b.add(row, from))), b.i32(places.normsBytes), barrier);
}

/// The turn-th block of queries of a head, the number-th of all.
void Sm90KeyGradients::copyBlock(Value turn, Value number) {
  Stage stage = stageOf(number);
  Value firstRow = b.mul(scores.blocks->at(turn), config.blockQueries), head = b.to32(scores.headNumber());
  auto copy = [&](Places::Barrier full, Places::Barrier empty, int64_t place, int64_t bytes, int64_t cols, Value map) {
    Value arrived = barrier(full, stage);
    b.wait(barrier(empty, stage), b.sub(b.i32(1), stage.parity));
    b.expect(arrived, bytes + places.normsBytes);
    copyTile(b, tileAt(place, bytes, stage), map, firstRow, head, cols, arrived);
    return arrived;
  };
  Value arrived = copy(Places::QueriesFull, Places::QueriesEmpty, places.queries, places.queryBytes, shape.dim, b.tensorMap(0));
  copyNorms(places.lse, plan.lse, firstRow, stage, arrived);
  arrived = copy(Places::DoutFull, Places::DoutEmpty, places.douts, places.doutBytes, shape.valueDim, b.tensorMap(1));
  copyNorms(places.delta, plan.delta, firstRow, stage, arrived);
}

void Sm90KeyGradients::produce() {
  Value zero = b.i32(0), number = b.to32(b.add(b.mul(scores.batch, shape.kvHeads), scores.kvHead)), full = barrier(Places::KeysFull);
  b.expect(full, places.queries);
  copyTile(b, tileAt(places.keys, config.blockKeys()), b.tensorMap(2), scores.firstKey, number, shape.dim, full);
  copyTile(b, tileAt(places.values, config.blockKeys()), b.tensorMap(3), scores.firstKey, number, shape.valueDim, full);
  b.loop(zero, b.i32(shape.group), 1, zero, [&](Value head, ValueRange before) -> CodeBuilder::Carried {
    scores.placeHead(head);
    b.loop(zero, scores.blocks->count, 1, [&](Value turn) { copyBlock(turn, b.add(before[0], turn)); });
    return {b.add(before[0], scores.blocks->count)};
  });
}

//===----------------------------------------------------------------------===//
// Consumers
//===----------------------------------------------------------------------===//

SmallVector<Value> Sm90KeyGradients::flat(const Sums &sums) {
  SmallVector<Value> all(sums.dk);
  llvm::append_range(all, sums.dv);
  llvm::append_range(all, sums.columns);
  return all;
}

Sm90KeyGradients::Sums Sm90KeyGradients::sumsOf(ValueRange values) {
  int64_t dk = keyLayout.numRegisters(), dv = valueLayout.numRegisters();
  return {llvm::to_vector(values.take_front(dk)), llvm::to_vector(values.slice(dk, dv)), llvm::to_vector(values.drop_front(dk + dv))};
}

/// This warp has read.
void Sm90KeyGradients::release(Value barrier) {
  b.syncWarp();
  b.when(b.isEqual(b.lane(), 0), [&] { b.arrive(barrier); });
}

/// Of K or V, the rows of this warpgroup.
SharedFactor Sm90KeyGradients::rowsOfGroup(int64_t place, int64_t dim) {
  Value first = b.shiftBytes(b.sharedAt(place), b.mul(group, Sm90Builder::groupRows * Sm90Builder::panelBytes));
  return b.factorAlong(first, config.blockKeys(), padded(dim));
}

/// (f·P)ᵀ and dSᵀ, one behind the other, then the sums of columns.
SmallVector<Value> Sm90KeyGradients::gradientsOf(ArrayRef<Value> s, ArrayRef<Value> dp, Value block, const Stage &stage,
                                                 ArrayRef<Value> columns) {
  auto norms = [&](int64_t place) {
    Value own = b.shiftBytes(b.sharedAt(place), b.add(b.mul(stage.index, places.normsBytes), b.mul(b.colOfLane(), normBytes)));
    return [this, own](int64_t at) -> Value {
      return LLVM::LoadOp::create(b, b.loc, b.getF32Type(), b.shiftBytes(own, at * normBytes));
    };
  };
  auto emit = [&](bool masked) {
    return scores.emit(s, dp, b.mul(block, config.blockQueries), norms(places.lse), norms(places.delta), masked, columns);
  };
  if (!scores.isEverMasked())
    return emit(false);
  SmallVector<Type> types(2 * s.size() + columns.size(), b.getF32Type());
  return b.choose(scores.blocks->isFree(block), types, [&] { return emit(false); }, [&] { return emit(true); });
}

Sm90KeyGradients::Sums Sm90KeyGradients::turn(Value turn, const Stage &stage, Sums sums) {
  PanelTile q = tileAt(places.queries, places.queryBytes, stage), dout = tileAt(places.douts, places.doutBytes, stage);
  int64_t rows = config.blockQueries, dim = padded(shape.dim), valueDim = padded(shape.valueDim);
  b.wait(barrier(Places::QueriesFull, stage), stage.parity);
  SmallVector<Value> both = b.multiply({}, rowsOfGroup(places.keys, shape.dim), b.factorAlong(q.base, rows, dim), rows, element);
  size_t count = both.size();
  b.wait(barrier(Places::DoutFull, stage), stage.parity);
  llvm::append_range(both, b.multiply({}, rowsOfGroup(places.values, shape.valueDim), b.factorAlong(dout.base, rows, valueDim), rows, element));
  both = b.waitForSums(both);
  both = gradientsOf(ArrayRef(both).take_front(count), ArrayRef(both).drop_front(count), scores.blocks->at(turn), stage, sums.columns);
  auto factor = [&](size_t first) {
    return toFactor(b, {scores.layout, SmallVector<Value>(ArrayRef(both).slice(first, count))}, element);
  };
  sums.columns.assign(both.begin() + 2 * count, both.end());
  sums.dv = b.multiply(sums.dv, factor(0), b.factorAcross(dout.base, rows, rows), valueDim, element);
  sums.dk = b.multiply(sums.dk, factor(count), b.factorAcross(q.base, rows, rows), dim, element);
  sums.dv = b.waitForSums(sums.dv, 1);
  release(barrier(Places::DoutEmpty, stage));
  sums.dk = b.waitForSums(sums.dk);
  release(barrier(Places::QueriesEmpty, stage));
  return sums;
}

Sm90KeyGradients::Sums Sm90KeyGradients::consumeHead(Value before, Sums sums) {
  sums.columns = scores.emptyColumns();
  sums = sumsOf(b.loop(b.i32(0), scores.blocks->count, 1, flat(sums), [&](Value number, ValueRange state) {
    return flat(turn(number, stageOf(b.add(before, number)), sumsOf(state)));
  }));
  scores.storeColumns(sums.columns);
  sums.columns.clear();
  return sums;
}

void Sm90KeyGradients::store(const Sums &sums) {
  ArrayRef<Value> numbers = scores.numbers;
  SmallVector<Value> scale(numbers.size(), b.number(op.getScale().convertToDouble())), one(numbers.size());
  auto rowsOf = [&](const Pointer &out, int64_t dim) {
    return slabOf(b, out, scores.batch, scores.kvHead, shape.kvHeads, shape.cols, dim);
  };
  if (Pointer out = b.destination(kernel, op.getDk()); out.base)
    storeRows(b, {keyLayout, sums.dk}, numbers, scale, rowsOf(out, shape.dim));
  if (Pointer out = b.destination(kernel, op.getDv()); out.base)
    storeRows(b, {valueLayout, sums.dv}, numbers, one, rowsOf(out, shape.valueDim));
}

void Sm90KeyGradients::consume(Value ownGroup) {
  group = ownGroup;
  scores.placeLane(b.sub(b.warp(), b.i32(Sm90Builder::groupThreads / 32)));
  Value zero = b.i32(0);
  Sums none{SmallVector<Value>(keyLayout.numRegisters(), b.number(0)), SmallVector<Value>(valueLayout.numRegisters(), b.number(0)), {}};
  b.wait(barrier(Places::KeysFull), zero);
  SmallVector<Value> state = flat(none);
  state.push_back(zero);
  state = b.loop(zero, b.i32(shape.group), 1, state, [&](Value head, ValueRange state) {
    scores.placeHead(head);
    SmallVector<Value> next = flat(consumeHead(state.back(), sumsOf(state.drop_back())));
    next.push_back(b.add(state.back(), scores.blocks->count));
    return next;
  });
  store(sumsOf(ValueRange(state).drop_back()));
}

void Sm90KeyGradients::emit() {
  scores.placeBlock(b.div(b.block(), scores.keyBlocks()), b.rem(b.block(), scores.keyBlocks()));
  initBarriers();
  Value number = b.warpgroup();
  b.when(
      b.isEqual(number, 0),
      [&] {
        giveRegisters(b, config.groups);
        b.when(b.isEqual(b.thread(), 0), [&] { produce(); });
      },
      [&] {
        takeRegisters(b, config.groups);
        consume(b.sub(number, b.i32(1)));
      });
}

void attention::lowerSm90Keys(const Sm80Problem &problem, const Sm90Keys &config, StringRef symbol, ModuleOp entries, GpuKernel &info) {
  AttentionGradOp op = problem.op;
  const Shape &shape = problem.shape;
  Type element = cast<RankedTensorType>(op.getQ().getType()).getElementType();
  auto map = [&](Value tensor, int64_t rows) { return mapOfHeads(problem.kernel, tensor, rows); };
  std::vector<GpuTensorMap> maps = {map(op.getQ(), config.blockQueries), map(op.getDout(), config.blockQueries),
                                    map(op.getK(), config.blockKeys()), map(op.getV(), config.blockKeys())};
  Sm90Builder b(op.getLoc(), op.getContext(), config.threads());
  b.enter(entries, problem.kernel, symbol, 1, /*scratch=*/true, maps.size());
  Sm90KeyGradients(b, problem, config, element).emit();
  b.leave();
  int64_t blocks = shape.batch * shape.kvHeads * llvm::divideCeil(shape.cols, config.blockKeys());
  GpuLaunch launch{symbol.str(), blocks, config.threads(), Places(config, shape).bytes(), {}};
  launch.maps = std::move(maps);
  info.launches.push_back(std::move(launch));
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

std::optional<Sm90Keys> attention::chooseSm90Keys(AttentionGradOp op, const GpuTarget &target) {
  for (Value tensor : {op.getQ(), op.getK(), op.getV(), op.getDout()})
    if (!hasTensorMap(cast<RankedTensorType>(tensor.getType())))
      return std::nullopt;
  if (!target.hasWarpgroups())
    return std::nullopt;
  Shape shape = getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType());
  Sm90Keys config{2, 64};
  Sm80Needs needs = sm90KeyNeeds(config, shape);
  if (needs.registers > registersOfRoles(config.groups).consumer || needs.sharedBytes > target.sharedPerBlock)
    return std::nullopt;
  return config;
}
