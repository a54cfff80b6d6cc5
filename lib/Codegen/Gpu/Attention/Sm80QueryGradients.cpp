//===- Sm80QueryGradients.cpp - dQ with mma.sync ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Emits the first backward kernel. A block of threads owns a block of queries of one head:
//
//   δ = Σ O·dO for each query; δ and lse (inf without keys) to scratch;
//   fetch Q, dO, K[0], V[0];
//   for each block i of keys                   unless it is entirely masked
//     wait; barrier; fetch K[i + 1], V[i + 1];
//     S = Q · Kᵀ;  dP = dO · Vᵀ;  dS: QueryScores.cpp;
//     dQ += dS · K;
//   scale · dQ;
//
// The kernel also sums contributions to captured tensors if the indices of the contributions do not
// depend on the key. If the indices of contributions depend on both query and key, this kernel only
// records the largest magnitude of these contributions. A second kernel with the same loop then
// adds them to tables (Sm80Captures.cpp).
//
// Each row of dQ is summed by only one block of threads, so the bits are reproducible. The
// disadvantage is that S and dP are computed both here and in Sm80KeyGradients.cpp, so that there
// are seven products instead of five.
//
//===----------------------------------------------------------------------===//

#include "QueryScores.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {
class QueryGradients {
public:
  QueryGradients(Sm80Tiles &b, const Sm80Problem &problem, const QueryOrder &order, bool tables)
      : b(b), plan(problem.plan), config(plan.queries), order(order), shape(problem.shape),
        op(problem.op), kernel(problem.kernel), tables(tables),
        scores(b, problem, config.blockRows(), config.blockCols,
               Layout::mmaSums(config.warpRows(), config.blockCols), tables),
        resultLayout(Layout::mmaSums(config.warpRows(), Sm80Tiles::paddedCols(shape.dim))) {}
  void emit();

private:
  void placeUnit();
  void placeTiles();
  void placeQueries();
  std::pair<Value, Value> normOf(Value row, Value exists);
  void fetch(Value turn);
  SmallVector<Value> processBlock(Value number, ValueRange state);
  int64_t results() const { return tables ? 0 : resultLayout.numRegisters(); }

  Sm80Tiles &b;
  const Sm80Backward &plan;
  const Sm80Config config;
  const QueryOrder order;
  const Shape &shape;
  AttentionGradOp op;
  func::FuncOp kernel;
  bool tables;
  QueryScores scores;
  Layout resultLayout;

  GlobalRows qRows, doutRows, kRows, vRows;
  SharedTile qTile, doutTile, kTile, vTile;
};
} // namespace

void QueryGradients::placeUnit() {
  auto [number, rowBlock] = order.tileAt(b, b.block(), b.i32(0));
  scores.placeBlock(number, rowBlock);
  const Head &head = scores.head;
  auto slab = [&](Value tensor, Value ownHead) {
    return slabOf(b, headTensorOf(b, kernel, tensor), head.batch, ownHead);
  };
  qRows = slab(op.getQ(), head.head);
  doutRows = slab(op.getDout(), head.head);
  kRows = slab(op.getK(), head.kvHead);
  vRows = slab(op.getV(), head.kvHead);
}

void QueryGradients::placeTiles() {
  int64_t pitch = Sm80Tiles::pitchOf(b.element, shape.dim),
          valuePitch = Sm80Tiles::pitchOf(b.element, shape.valueDim);
  int64_t dout = config.blockRows() * pitch, k = dout + config.blockRows() * valuePitch,
          v = k + 2 * config.blockCols * pitch;
  qTile = {b.sharedAt(0), pitch};
  doutTile = {b.sharedAt(dout), valuePitch};
  kTile = {b.sharedAt(k), pitch};
  vTile = {b.sharedAt(v), valuePitch};
}

/// Returns lse · log2(e) and δ of a query. The four lanes that hold the query's row compute δ
/// together.
std::pair<Value, Value> QueryGradients::normOf(Value row, Value exists) {
  Value number = b.add(b.mul(scores.head.batch, shape.heads), scores.head.head);
  Pointer lseOfHead = b.shift(b.binding(op.getLse()), b.mul(number, shape.rows));
  Value lse = b.load(b.getF32Type(), b.shift(lseOfHead, b.to64(row)));
  Value isEmpty =
      arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, lse, b.number(-infinity));
  GlobalRows oRows =
      slabOf(b, headTensorOf(b, kernel, op.getO()), scores.head.batch, scores.head.head);
  Value delta = b.number(0), own = b.rem(b.lane(), 4);
  for (int64_t col = 0; col < shape.valueDim; col += 4) {
    Value at = b.add(own, col),
          inRow = col + 4 > shape.valueDim ? b.isLower(at, shape.valueDim) : Value();
    if (inRow)
      at = b.select(inRow, at, b.i32(0));
    auto of = [&](const GlobalRows &rows) {
      Value place = b.add(b.mul(b.to64(row), rows.stride), b.to64(at));
      return b.convertFloat(b.load(rows.place.type, b.shift(rows.place, place)), b.getF32Type());
    };
    Value o = of(oRows);
    delta = b.fma(inRow ? b.select(inRow, o, b.number(0)) : o, of(doutRows), delta);
  }
  delta = b.overQuad(delta, [&](Value x, Value y) { return b.addf(x, y); });
  isEmpty = b.either(isEmpty, arith::XOrIOp::create(b, b.loc, exists, b.boolean(true)));
  return {b.select(isEmpty, b.number(infinity), b.mulf(lse, b.number(log2e))),
          b.select(exists, delta, b.number(0))};
}

void QueryGradients::placeQueries() {
  const Head &head = scores.head;
  Value number = b.add(b.mul(head.batch, shape.heads), head.head),
        isFirst = b.isEqual(b.rem(b.lane(), 4), 0);
  Pointer scratch = b.scratch(b.getF32Type());
  scores.placeLane(b.warp(), [&](Value row, Value existing, Value exists) {
    auto norms = normOf(existing, exists);
    // If `tables` is true, an earlier kernel has already stored lse and δ.
    if (tables)
      return norms;
    Value place = b.add(b.mul(number, plan.rowStride), b.to64(row));
    b.when(b.both(isFirst, b.isLower(row, plan.rowStride)), [&] {
      b.store(norms.first, b.shift(scratch, b.add(place, plan.lse)));
      b.store(norms.second, b.shift(scratch, b.add(place, plan.delta)));
    });
    return norms;
  });
}

void QueryGradients::fetch(Value turn) {
  Value first = b.mul(scores.blocks->at(turn), config.blockCols);
  bool whole = scores.wholeCols();
  b.copyAsync(stageOf(b, kTile, config.blockCols, turn), kRows, first, config.blockCols, whole);
  b.copyAsync(stageOf(b, vTile, config.blockCols, turn), vRows, first, config.blockCols, whole);
}

SmallVector<Value> QueryGradients::processBlock(Value number, ValueRange state) {
  Fragment dq{resultLayout, llvm::to_vector(state.take_front(results()))};
  SmallVector<Value> sums(state.drop_front(results()));
  Value block = scores.blocks->at(number), firstCol = b.mul(block, config.blockCols),
        next = b.add(number, 1);
  b.waitForCopies(0);
  b.barrier();
  b.when(b.isLess(next, scores.blocks->count), [&] { fetch(next); });
  b.commit();
  SharedTile keys = stageOf(b, kTile, config.blockCols, number),
             values = stageOf(b, vTile, config.blockCols, number);
  SmallVector<Value> drawn = scores.draw(firstCol), all;
  Fragment none = b.fill(scores.layout, b.number(0));
  Fragment s = b.multiplyRows(none, rowsOfWarp(b, qTile, config.warpRows()), keys,
                              Sm80Tiles::paddedCols(shape.dim));
  Fragment dp = b.multiplyRows(none, rowsOfWarp(b, doutTile, config.warpRows()), values,
                               Sm80Tiles::paddedCols(shape.valueDim));
  if (!drawn.empty())
    b.endBlock(); // otherwise factors of products take registers that values of functions then lack
  auto emit = [&](bool masked) {
    return scores.emit(s.registers, dp.registers, firstCol, masked, drawn, sums);
  };
  size_t count = tables ? 0 : s.registers.size();
  if (!scores.isEverMasked()) {
    all = emit(false);
  } else {
    SmallVector<Type> types(count + sums.size(), b.getF32Type());
    all = b.choose(
        scores.blocks->isFree(block), types, [&] { return emit(false); },
        [&] { return emit(true); });
  }
  if (tables)
    return {};
  dq = b.multiplyAcross(std::move(dq),
                        {scores.layout, llvm::to_vector(ArrayRef(all).take_front(count))}, keys);
  SmallVector<Value> updated(dq.registers);
  updated.append(all.begin() + count, all.end());
  return updated;
}

void QueryGradients::emit() {
  placeUnit();
  placeTiles();
  Value zero = b.i32(0);
  b.when(b.isLess(zero, scores.blocks->count), [&] {
    bool whole = shape.rows % config.blockRows() == 0;
    b.copyAsync(qTile, qRows, scores.firstQuery, config.blockRows(), whole);
    b.copyAsync(doutTile, doutRows, scores.firstQuery, config.blockRows(), whole);
    fetch(zero);
    b.commit();
  });
  placeQueries();
  SmallVector<Value> state(results() + scores.numSums(), b.number(0));
  state = b.loop(zero, scores.blocks->count, 1, state,
                 [&](Value number, ValueRange state) { return processBlock(number, state); });
  if (tables)
    return;
  scores.storeSums(ArrayRef(state).drop_front(results()), b.warp(), config.warps);
  HeadTensor out = headTensorOf(b, kernel, op.getDq());
  if (!out.place.base)
    return;
  Fragment dq{resultLayout, llvm::to_vector(ArrayRef(state).take_front(results()))};
  SmallVector<Value> scale(scores.numbers.size(), b.number(op.getScale().convertToDouble()));
  storeRows(b, dq, scores.numbers, scale, slabOf(b, out, scores.head.batch, scores.head.head));
}

void attention::emitQueryGradients(Sm80Tiles &b, const Sm80Problem &problem,
                                   const QueryOrder &order, bool tables) {
  QueryGradients(b, problem, order, tables).emit();
}
