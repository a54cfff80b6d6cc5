//===- Sm80KeyGradients.cpp - dK and dV on a GPU ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The second kernel of the backward. A block of threads has a block of keys of one kv head:
//
//   fetch K, V
//   for each query head that shares it, in order
//     fetch Q[0], dO[0], lse[0], δ[0]
//     for each block i of queries that meets the keys
//       wait; barrier; fetch Q[i + 1], dO[i + 1], lse[i + 1], δ[i + 1]
//       Sᵀ = K · Qᵀ;  dPᵀ = V · dOᵀ;  f·P, dS: ScoreGradients.cpp
//       dV += (f·P)ᵀ · dO;  dK += dSᵀ · Q
//   scale · dK, dV
//
// With the keys as rows, Pᵀ and dSᵀ stand in the registers as the left factors of the
// products behind. Where the sums of dK and dV do not fit into registers together, each has a
// kernel of its own. One block adds to a row, in the order of heads and queries, so
// bits depend on nothing.
//
//===----------------------------------------------------------------------===//

#include "Sm80Backward.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

namespace {
class KeyGradients {
public:
  KeyGradients(Sm80Tiles &b, const Sm80Problem &problem, const Sm80Config &config, bool wantsK, bool wantsV)
      : b(b), plan(problem.plan), config(config), shape(problem.shape), op(problem.op), kernel(problem.kernel),
        captures(problem.captures), wantsK(wantsK), wantsV(wantsV),
        ranges(AttentionTiles(op).getRowTiles(config.blockCols)),
        scoreLayout(Layout::mmaSums(config.warpRows(), config.blockCols)),
        keyLayout(Layout::mmaSums(config.warpRows(), Sm80Tiles::paddedCols(shape.dim))),
        valueLayout(Layout::mmaSums(config.warpRows(), Sm80Tiles::paddedCols(shape.valueDim))) {
    if (wantsK)
      perColumn = captures.of(Dependence::Column);
  }
  void emit();

private:
  struct Sums {
    Fragment dk, dv;
    SmallVector<Value> columns; ///< of what each key of this lane contributes
  };
  bool wholeRows() const { return shape.rows % config.blockCols == 0; }
  void placeUnit();
  void placeTiles();
  void placeHead(Value group);
  void fetch(Value turn);
  Value numbersAt(Value base, Value turn);
  Query queryAt(Value firstRow, int64_t at, Value turn, bool masked);
  /// (f·P)ᵀ and dSᵀ, one behind the other, then the sums of columns.
  SmallVector<Value> gradientsOf(const Fragment &s, const Fragment &dp, Value firstRow, Value turn, bool masked,
                                 SmallVector<Value> columns);
  void storeColumns(ArrayRef<Value> columns);
  Sums turn(Value number, Sums sums);
  Sums sumsOf(ValueRange values);
  SmallVector<Value> flat(const Sums &sums);
  Sums emitHead(Value group, Sums sums);

  Sm80Tiles &b;
  const Sm80Backward &plan;
  const Sm80Config config;
  const Shape &shape;
  AttentionGradOp op;
  func::FuncOp kernel;
  const Sm80Captures &captures;
  bool wantsK, wantsV;
  SmallVector<const Sm80Contribution *> perColumn; ///< empty where dS is not known
  SmallVector<TileRange> ranges;
  Layout scoreLayout, keyLayout, valueLayout;

  Head head;
  Value firstKey, kvHead, batch;
  GlobalRows qRows, doutRows, kRows, vRows;
  Pointer lse, delta; ///< of the head
  SharedTile kTile, vTile, qTile, doutTile;
  Value lseTile, deltaTile;
  SmallVector<Value> numbers;
  SmallVector<Key> keys;
  std::optional<ScoreGradients> functions;
  std::optional<BlockSequence> blocks;
};
} // namespace

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

void KeyGradients::placeUnit() {
  int64_t keyBlocks = llvm::divideCeil(shape.cols, config.blockRows());
  Value unit = b.block(), number = b.div(unit, keyBlocks);
  firstKey = b.mul(b.rem(unit, keyBlocks), config.blockRows());
  batch = b.to64(b.div(number, shape.kvHeads));
  kvHead = b.to64(b.rem(number, shape.kvHeads));
  kRows = slabOf(b, b.binding(op.getK()), batch, kvHead, shape.kvHeads, shape.cols, shape.dim);
  vRows = slabOf(b, b.binding(op.getV()), batch, kvHead, shape.kvHeads, shape.cols, shape.valueDim);
  Value first = b.add(b.add(firstKey, b.mul(b.warp(), config.warpRows())), b.rowOfLane());
  for (int64_t i = 0; i < scoreLayout.rowsOfLane(); ++i)
    numbers.push_back(b.add(first, 8 * i));
}

void KeyGradients::placeTiles() {
  int64_t pitch = Sm80Tiles::pitchOf(b.element, shape.dim), valuePitch = Sm80Tiles::pitchOf(b.element, shape.valueDim);
  int64_t at = 0;
  auto take = [&](int64_t bytes) {
    at += bytes;
    return b.sharedAt(at - bytes);
  };
  kTile = {take(config.blockRows() * pitch), pitch};
  vTile = {take(config.blockRows() * valuePitch), valuePitch};
  qTile = {take(2 * config.blockCols * pitch), pitch};
  doutTile = {take(2 * config.blockCols * valuePitch), valuePitch};
  lseTile = take(2 * config.blockCols * 4);
  deltaTile = take(2 * config.blockCols * 4);
}

void KeyGradients::placeHead(Value group) {
  head = {batch, b.add(b.mul(kvHead, shape.group), b.to64(group)), kvHead};
  qRows = slabOf(b, b.binding(op.getQ()), batch, head.head, shape.heads, shape.rows, shape.dim);
  doutRows = slabOf(b, b.binding(op.getDout()), batch, head.head, shape.heads, shape.rows, shape.valueDim);
  Value number = b.mul(b.add(b.mul(batch, shape.heads), head.head), shape.rows);
  lse = b.shift(b.scratch(b.getF32Type()), b.add(number, plan.lse));
  delta = b.shift(b.scratch(b.getF32Type()), b.add(number, plan.delta));
  functions.emplace(b, op, shape, head);
  Value last = b.min(b.add(firstKey, config.blockRows()), b.i32(shape.cols));
  blocks.emplace(b, ranges, functions->mask, head, firstKey, last);
  keys.clear();
  for (Value key : numbers)
    keys.push_back(functions->key(b.min(key, b.i32(shape.cols - 1)), Value()));
}

Value KeyGradients::numbersAt(Value base, Value turn) {
  return b.shiftBytes(base, b.mul(b.rem(turn, 2), config.blockCols * 4));
}

void KeyGradients::fetch(Value turn) {
  int64_t rows = config.blockCols;
  Value first = b.mul(blocks->at(turn), rows);
  b.copyAsync(stageOf(b, qTile, rows, turn), qRows, first, rows, wholeRows());
  b.copyAsync(stageOf(b, doutTile, rows, turn), doutRows, first, rows, wholeRows());
  b.copyWordsAsync(numbersAt(lseTile, turn), lse, first, rows, shape.rows);
  b.copyWordsAsync(numbersAt(deltaTile, turn), delta, first, rows, shape.rows);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Query KeyGradients::queryAt(Value firstRow, int64_t at, Value turn, bool masked) {
  Value offset = b.mul(b.colOfLane(), 4), row = b.add(b.add(firstRow, b.colOfLane()), at);
  auto of = [&](Value base) -> Value {
    return LLVM::LoadOp::create(b, b.loc, b.getF32Type(), b.shiftBytes(b.shiftBytes(numbersAt(base, turn), offset), at * 4));
  };
  bool checks = masked && !wholeRows();
  return functions->query(checks ? b.min(row, b.i32(shape.rows - 1)) : row, checks ? b.isLower(row, shape.rows) : Value(),
                          of(lseTile), of(deltaTile));
}

SmallVector<Value> KeyGradients::gradientsOf(const Fragment &s, const Fragment &dp, Value firstRow, Value turn, bool masked,
                                             SmallVector<Value> columns) {
  int64_t count = scoreLayout.numRegisters();
  SmallVector<std::optional<Query>> queries(scoreLayout.numCols());
  SmallVector<Value> all(wantsK ? 2 * count : count);
  for (int64_t reg = 0; reg < count; ++reg) {
    int64_t at = scoreLayout.place(reg).second;
    if (!queries[at])
      queries[at] = queryAt(firstRow, at, turn, masked);
    Value cotangent = wantsK ? dp.registers[reg] : Value();
    int64_t row = scoreLayout.rowOf(reg);
    auto contribute = [&](ValueAt at, const Site &, FragmentFunction::Values &, Value keep) {
      for (auto [i, c] : llvm::enumerate(perColumn)) {
        Value &sum = columns[i * scoreLayout.rowsOfLane() + row];
        sum = b.addf(sum, captures.valueOf(b, *c, at, keep));
      }
    };
    auto [mixed, ds] = functions->emit(s.registers[reg], cotangent, *queries[at], keys[row], masked, contribute);
    all[reg] = mixed;
    if (wantsK)
      all[count + reg] = ds;
  }
  llvm::append_range(all, columns);
  return all;
}

/// Sums of each key over the queries of the head, to scratch.
void KeyGradients::storeColumns(ArrayRef<Value> columns) {
  int64_t rows = scoreLayout.rowsOfLane();
  Value isFirst = b.isEqual(b.rem(b.lane(), 4), 0), number = b.mul(b.add(b.mul(batch, shape.heads), head.head), shape.cols);
  for (auto [i, c] : llvm::enumerate(perColumn))
    for (int64_t row = 0; row < rows; ++row) {
      Value sum = b.overQuad(columns[i * rows + row], [&](Value x, Value y) { return b.addf(x, y); });
      b.when(b.both(isFirst, b.isLower(numbers[row], shape.cols)),
             [&, c = c] { captures.storeSum(b, *c, b.add(number, b.to64(numbers[row])), sum); });
    }
}

KeyGradients::Sums KeyGradients::turn(Value number, Sums sums) {
  Value block = blocks->at(number), firstRow = b.mul(block, config.blockCols), next = b.add(number, 1);
  b.waitForCopies(0);
  b.barrier();
  b.when(b.isLess(next, blocks->count), [&] { fetch(next); });
  b.commit();
  SharedTile q = stageOf(b, qTile, config.blockCols, number), dout = stageOf(b, doutTile, config.blockCols, number);
  Fragment none = b.fill(scoreLayout, b.number(0)), dp = none;
  Fragment s = b.multiplyRows(none, rowsOfWarp(b, kTile, config.warpRows()), q, Sm80Tiles::paddedCols(shape.dim));
  if (wantsK)
    dp = b.multiplyRows(none, rowsOfWarp(b, vTile, config.warpRows()), dout, Sm80Tiles::paddedCols(shape.valueDim));
  SmallVector<Value> both;
  if (op.getMaskMod().empty() && wholeRows()) {
    both = gradientsOf(s, dp, firstRow, number, false, sums.columns);
  } else {
    SmallVector<Type> types(s.registers.size() * (wantsK ? 2 : 1) + sums.columns.size(), b.getF32Type());
    both = b.choose(
        blocks->isFree(block), types, [&] { return gradientsOf(s, dp, firstRow, number, false, sums.columns); },
        [&] { return gradientsOf(s, dp, firstRow, number, true, sums.columns); });
  }
  sums.columns.assign(both.end() - sums.columns.size(), both.end());
  ArrayRef<Value> all = ArrayRef(both).drop_back(sums.columns.size());
  if (wantsV)
    sums.dv = b.multiplyAcross(sums.dv, {scoreLayout, llvm::to_vector(all.take_front(s.registers.size()))}, dout);
  if (wantsK)
    sums.dk = b.multiplyAcross(sums.dk, {scoreLayout, llvm::to_vector(all.take_back(s.registers.size()))}, q);
  return sums;
}

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

SmallVector<Value> KeyGradients::flat(const Sums &sums) {
  SmallVector<Value> all;
  if (wantsK)
    llvm::append_range(all, sums.dk.registers);
  if (wantsV)
    llvm::append_range(all, sums.dv.registers);
  llvm::append_range(all, sums.columns);
  return all;
}

KeyGradients::Sums KeyGradients::sumsOf(ValueRange values) {
  Sums sums{{keyLayout, {}}, {valueLayout, {}}, {}};
  int64_t products = (wantsK ? keyLayout.numRegisters() : 0) + (wantsV ? valueLayout.numRegisters() : 0);
  sums.columns = llvm::to_vector(values.drop_front(products));
  values = values.take_front(products);
  if (wantsK)
    sums.dk.registers = llvm::to_vector(values.take_front(keyLayout.numRegisters()));
  if (wantsV)
    sums.dv.registers = llvm::to_vector(values.take_back(valueLayout.numRegisters()));
  return sums;
}

KeyGradients::Sums KeyGradients::emitHead(Value group, Sums sums) {
  placeHead(group);
  Value zero = b.i32(0);
  if (shape.group > 1)
    b.barrier(); // all warps have left the buffers of the head before
  b.when(b.isLess(zero, blocks->count), [&] { fetch(zero); });
  b.commit();
  sums.columns.assign(perColumn.size() * scoreLayout.rowsOfLane(), b.number(0));
  sums = sumsOf(b.loop(zero, blocks->count, 1, flat(sums),
                       [&](Value number, ValueRange state) { return flat(turn(number, sumsOf(state))); }));
  storeColumns(sums.columns);
  sums.columns.clear();
  return sums;
}

void KeyGradients::emit() {
  placeUnit();
  placeTiles();
  bool whole = shape.cols % config.blockRows() == 0;
  b.copyAsync(kTile, kRows, firstKey, config.blockRows(), whole);
  b.copyAsync(vTile, vRows, firstKey, config.blockRows(), whole);
  b.commit();
  Sums none{b.fill(keyLayout, b.number(0)), b.fill(valueLayout, b.number(0)), {}};
  Value zero = b.i32(0);
  Sums sums = shape.group == 1 ? emitHead(zero, none)
                               : sumsOf(b.loop(zero, b.i32(shape.group), 1, flat(none), [&](Value group, ValueRange state) {
                                   return flat(emitHead(group, sumsOf(state)));
                                 }));
  b.waitForCopies(0);
  SmallVector<Value> scale(numbers.size(), b.number(op.getScale().convertToDouble())), one(numbers.size());
  if (Pointer out = b.destination(kernel, op.getDk()); wantsK && out.base)
    storeRows(b, sums.dk, numbers, scale, slabOf(b, out, batch, kvHead, shape.kvHeads, shape.cols, shape.dim));
  if (Pointer out = b.destination(kernel, op.getDv()); wantsV && out.base)
    storeRows(b, sums.dv, numbers, one, slabOf(b, out, batch, kvHead, shape.kvHeads, shape.cols, shape.valueDim));
}

void attention::emitKeyGradients(Sm80Tiles &b, const Sm80Problem &problem, const Sm80Config &config, bool wantsK, bool wantsV) {
  KeyGradients(b, problem, config, wantsK, wantsV).emit();
}
