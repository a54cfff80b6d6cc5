//===- Sm80QueryGradients.cpp - dQ on a GPU ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The first kernel of the backward. A block of threads has a block of queries of one head:
//
//   δ = Σ O·dO for each query; it and lse (inf where there was no key) to scratch
//   fetch Q, dO, K[0], V[0]
//   for each block i of keys that is not masked as a whole
//     wait; barrier; fetch K[i + 1], V[i + 1]
//     S = Q · Kᵀ;  dP = dO · Vᵀ;  dS: ScoreGradients.cpp
//     dQ += dS · K
//   scale · dQ
//
// Nobody else adds to dQ, so bits depend on nothing. What that costs is S and dP twice, here
// and in Sm80KeyGradients.cpp: seven products instead of five.
//
//===----------------------------------------------------------------------===//

#include "Sm80Backward.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {
class QueryGradients {
public:
  QueryGradients(Sm80Tiles &b, const Sm80Backward &plan, const Shape &shape, AttentionGradOp op, func::FuncOp kernel)
      : b(b), plan(plan), config(plan.queries), shape(shape), op(op), kernel(kernel),
        ranges(AttentionTiles(op).getKeyTiles(config.blockCols)),
        scoreLayout(Layout::mmaSums(config.warpRows(), config.blockCols)),
        resultLayout(Layout::mmaSums(config.warpRows(), Sm80Tiles::paddedCols(shape.dim))) {}
  void emit();

private:
  bool wholeCols() const { return shape.cols % config.blockCols == 0; }
  void placeUnit();
  void placeTiles();
  void placeQueries();
  std::pair<Value, Value> normOf(Value row, Value exists);
  void fetch(Value turn);
  Fragment gradientOf(const Fragment &s, const Fragment &dp, Value firstCol, bool masked);
  Fragment turn(Value number, Fragment dq);

  Sm80Tiles &b;
  const Sm80Backward &plan;
  const Sm80Config config;
  const Shape &shape;
  AttentionGradOp op;
  func::FuncOp kernel;
  SmallVector<TileRange> ranges;
  Layout scoreLayout, resultLayout;

  Head head;
  Value firstRow;
  GlobalRows qRows, doutRows, kRows, vRows;
  SharedTile qTile, doutTile, kTile, vTile;
  std::optional<ScoreGradients> functions;
  std::optional<BlockSequence> blocks;
  SmallVector<Value> numbers;
  SmallVector<Query> queries;
};
} // namespace

void QueryGradients::placeUnit() {
  int64_t rowBlocks = llvm::divideCeil(shape.rows, config.blockRows());
  Value unit = b.block(), number = b.div(unit, rowBlocks), own = b.rem(number, shape.heads);
  firstRow = b.mul(b.sub(b.i32(rowBlocks - 1), b.rem(unit, rowBlocks)), config.blockRows());
  head = {b.to64(b.div(number, shape.heads)), b.to64(own), b.to64(b.div(own, shape.group))};
  auto slab = [&](Value tensor, Value ownHead, int64_t heads, int64_t rows, int64_t cols) {
    return slabOf(b, b.binding(tensor), head.batch, ownHead, heads, rows, cols);
  };
  qRows = slab(op.getQ(), head.head, shape.heads, shape.rows, shape.dim);
  doutRows = slab(op.getDout(), head.head, shape.heads, shape.rows, shape.valueDim);
  kRows = slab(op.getK(), head.kvHead, shape.kvHeads, shape.cols, shape.dim);
  vRows = slab(op.getV(), head.kvHead, shape.kvHeads, shape.cols, shape.valueDim);
}

void QueryGradients::placeTiles() {
  int64_t pitch = Sm80Tiles::pitchOf(b.element, shape.dim), valuePitch = Sm80Tiles::pitchOf(b.element, shape.valueDim);
  int64_t dout = config.blockRows() * pitch, k = dout + config.blockRows() * valuePitch, v = k + 2 * config.blockCols * pitch;
  qTile = {b.sharedAt(0), pitch};
  doutTile = {b.sharedAt(dout), valuePitch};
  kTile = {b.sharedAt(k), pitch};
  vTile = {b.sharedAt(v), valuePitch};
}

/// lse and δ of a query, by the four lanes that have its row.
std::pair<Value, Value> QueryGradients::normOf(Value row, Value exists) {
  Value number = b.add(b.mul(head.batch, shape.heads), head.head);
  Pointer lseOfHead = b.shift(b.binding(op.getLse()), b.mul(number, shape.rows));
  Value lse = b.load(b.getF32Type(), b.shift(lseOfHead, b.to64(row)));
  Value isEmpty = arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, lse, b.number(-infinity));
  GlobalRows oRows = slabOf(b, b.binding(op.getO()), head.batch, head.head, shape.heads, shape.rows, shape.valueDim);
  Value delta = b.number(0), own = b.rem(b.lane(), 4);
  for (int64_t col = 0; col < shape.valueDim; col += 4) {
    Value at = b.add(own, col), inRow = col + 4 > shape.valueDim ? b.isLower(at, shape.valueDim) : Value();
    if (inRow)
      at = b.select(inRow, at, b.i32(0));
    Value place = b.add(b.mul(b.to64(row), shape.valueDim), b.to64(at));
    auto of = [&](const GlobalRows &rows) {
      return b.convertFloat(b.load(rows.place.type, b.shift(rows.place, place)), b.getF32Type());
    };
    Value o = of(oRows);
    delta = b.fma(inRow ? b.select(inRow, o, b.number(0)) : o, of(doutRows), delta);
  }
  delta = b.overQuad(delta, [&](Value x, Value y) { return b.addf(x, y); });
  isEmpty = b.either(isEmpty, arith::XOrIOp::create(b, b.loc, exists, b.boolean(true)));
  return {b.select(isEmpty, b.number(infinity), lse), b.select(exists, delta, b.number(0))};
}

void QueryGradients::placeQueries() {
  Value first = b.add(b.add(firstRow, b.mul(b.warp(), config.warpRows())), b.rowOfLane());
  Value number = b.add(b.mul(head.batch, shape.heads), head.head), isFirst = b.isEqual(b.rem(b.lane(), 4), 0);
  Pointer scratch = b.scratch(b.getF32Type());
  for (int64_t i = 0; i < scoreLayout.rowsOfLane(); ++i) {
    Value row = b.add(first, 8 * i), exists = b.isLower(row, shape.rows), existing = b.min(row, b.i32(shape.rows - 1));
    auto [lse, delta] = normOf(existing, exists);
    numbers.push_back(row);
    queries.push_back(functions->query(existing, Value(), lse, delta));
    Value place = b.add(b.mul(number, shape.rows), b.to64(existing));
    b.when(b.both(isFirst, exists), [&, lse = lse, delta = delta] {
      b.store(lse, b.shift(scratch, b.add(place, plan.lse)));
      b.store(delta, b.shift(scratch, b.add(place, plan.delta)));
    });
  }
}

void QueryGradients::fetch(Value turn) {
  Value first = b.mul(blocks->at(turn), config.blockCols);
  b.copyAsync(stageOf(b, kTile, config.blockCols, turn), kRows, first, config.blockCols, wholeCols());
  b.copyAsync(stageOf(b, vTile, config.blockCols, turn), vRows, first, config.blockCols, wholeCols());
}

/// dS of a tile. Columns first: what is known of one is used for all rows.
Fragment QueryGradients::gradientOf(const Fragment &s, const Fragment &dp, Value firstCol, bool masked) {
  Value own = b.add(firstCol, b.colOfLane());
  SmallVector<std::optional<Key>> keys(scoreLayout.numCols());
  Fragment ds = s;
  for (int64_t reg = 0; reg < scoreLayout.numRegisters(); ++reg) {
    int64_t at = scoreLayout.place(reg).second;
    if (!keys[at]) {
      Value col = b.add(own, at);
      bool checks = masked && !wholeCols();
      keys[at] = functions->key(checks ? b.min(col, b.i32(shape.cols - 1)) : col, checks ? b.isLower(col, shape.cols) : Value());
    }
    const Query &query = queries[scoreLayout.rowOf(reg)];
    ds.registers[reg] = functions->emit(s.registers[reg], dp.registers[reg], query, *keys[at], masked).second;
  }
  return ds;
}

Fragment QueryGradients::turn(Value number, Fragment dq) {
  Value block = blocks->at(number), firstCol = b.mul(block, config.blockCols), next = b.add(number, 1);
  b.waitForCopies(0);
  b.barrier();
  b.when(b.isLess(next, blocks->count), [&] { fetch(next); });
  b.commit();
  SharedTile keys = stageOf(b, kTile, config.blockCols, number), values = stageOf(b, vTile, config.blockCols, number);
  Fragment none = b.fill(scoreLayout, b.number(0));
  Fragment s = b.multiplyRows(none, rowsOfWarp(b, qTile, config.warpRows()), keys, Sm80Tiles::paddedCols(shape.dim));
  Fragment dp = b.multiplyRows(none, rowsOfWarp(b, doutTile, config.warpRows()), values, Sm80Tiles::paddedCols(shape.valueDim));
  Fragment ds = s;
  if (op.getMaskMod().empty() && wholeCols()) {
    ds = gradientOf(s, dp, firstCol, false);
  } else {
    SmallVector<Type> types(s.registers.size(), b.getF32Type());
    ds.registers = b.choose(
        blocks->isFree(block), types, [&] { return gradientOf(s, dp, firstCol, false).registers; },
        [&] { return gradientOf(s, dp, firstCol, true).registers; });
  }
  return b.multiplyAcross(std::move(dq), ds, keys);
}

void QueryGradients::emit() {
  placeUnit();
  placeTiles();
  functions.emplace(b, op, shape, head);
  Value zero = b.i32(0), last = b.min(b.add(firstRow, config.blockRows()), b.i32(shape.rows));
  blocks.emplace(b, ranges, functions->mask, head, firstRow, last);
  b.when(b.isLess(zero, blocks->count), [&] {
    bool whole = shape.rows % config.blockRows() == 0;
    b.copyAsync(qTile, qRows, firstRow, config.blockRows(), whole);
    b.copyAsync(doutTile, doutRows, firstRow, config.blockRows(), whole);
    fetch(zero);
    b.commit();
  });
  placeQueries();
  Fragment dq = b.fill(resultLayout, b.number(0));
  dq.registers = b.loop(zero, blocks->count, 1, dq.registers, [&](Value number, ValueRange state) {
    return turn(number, {resultLayout, llvm::to_vector(state)}).registers;
  });
  Pointer out = b.destination(kernel, op.getDq());
  if (!out.base)
    return;
  SmallVector<Value> scale(numbers.size(), b.number(op.getScale().convertToDouble()));
  storeRows(b, dq, numbers, scale, slabOf(b, out, head.batch, head.head, shape.heads, shape.rows, shape.dim));
}

void attention::emitQueryGradients(Sm80Tiles &b, const Sm80Backward &plan, const Shape &shape, AttentionGradOp op,
                                   func::FuncOp kernel) {
  QueryGradients(b, plan, shape, op, kernel).emit();
}
