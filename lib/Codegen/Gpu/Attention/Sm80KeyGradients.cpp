//===- Sm80KeyGradients.cpp - dK and dV with mma.sync -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Emits the second backward kernel. A block of threads owns a block of keys of one kv head:
//
//   fetch K, V;
//   for each query head                        that shares the kv head, in order
//     fetch Q[0], dO[0], lse[0], δ[0];
//     for each block i of queries              unless it is entirely masked
//       wait; barrier; fetch Q[i + 1], dO[i + 1], lse[i + 1], δ[i + 1];
//       Sᵀ = K · Qᵀ;  dPᵀ = V · dOᵀ;  f·P, dS: Functions/;
//       dV += (f·P)ᵀ · dO;  dK += dSᵀ · Q;
//   scale · dK, dV;
//
// The rows of Pᵀ and dSᵀ are keys. Therefore both are already in the registers in which the later
// products expect their left factors. If the sums of dK and dV together do not fit the registers,
// there are two kernels, one for dK and one for dV. Each row of dK or dV is summed by only one
// block of threads, in the order of heads and queries. Therefore the bits are reproducible.
//
//===----------------------------------------------------------------------===//

#include "KeyScores.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

namespace {
class KeyGradients {
public:
  KeyGradients(Sm80Tiles &b, const Sm80Problem &problem, const Sm80Config &config,
               const KeyOrder &order, bool wantsK, bool wantsV)
      : b(b), plan(problem.plan), config(config), order(order), shape(problem.shape),
        op(problem.op), kernel(problem.kernel), wantsK(wantsK), wantsV(wantsV),
        scores(b, problem, config.blockRows(), config.blockCols,
               Layout::mmaSums(config.warpRows(), config.blockCols), wantsK, /*wantsQ=*/false),
        keyLayout(Layout::mmaSums(config.warpRows(), Sm80Tiles::paddedCols(shape.dim))),
        valueLayout(Layout::mmaSums(config.warpRows(), Sm80Tiles::paddedCols(shape.valueDim))) {}
  void emit();

private:
  struct Sums {
    Fragment dk, dv;
    SmallVector<Value> columns; ///< for each key of this lane, the sums of contributions
  };
  void placeUnit();
  void placeTiles();
  void placeHead(Value group);
  void fetch(Value turn);
  Value numbersAt(Value base, Value turn);
  Value normAt(Value base, Value turn, int64_t at);
  SmallVector<Value> gradientsOf(const Fragment &s, const Fragment &dp, Value turn, bool masked,
                                 ArrayRef<Value> drawn, ArrayRef<Value> columns);
  Sums processBlock(Value number, Sums sums);
  Sums sumsOf(ValueRange values);
  SmallVector<Value> flat(const Sums &sums);
  Sums emitHead(Value group, Sums sums);

  Sm80Tiles &b;
  const Sm80Backward &plan;
  const Sm80Config config;
  const KeyOrder order;
  const Shape &shape;
  AttentionGradOp op;
  func::FuncOp kernel;
  bool wantsK, wantsV;
  KeyScores scores;
  Layout keyLayout, valueLayout;

  GlobalRows qRows, doutRows, kRows, vRows;
  Pointer lse, delta; ///< addresses of lse and δ of the current head
  SharedTile kTile, vTile, qTile, doutTile;
  Value lseTile, deltaTile;
};
} // namespace

void KeyGradients::placeUnit() {
  auto place = order.placeAt(b, b.block(), b.i32(0));
  scores.placeBlock(place.kvHead, place.keyBlock);
  scores.placeLane(b.warp());
  kRows = slabOf(b, headTensorOf(b, kernel, op.getK()), scores.batch, scores.kvHead);
  vRows = slabOf(b, headTensorOf(b, kernel, op.getV()), scores.batch, scores.kvHead);
}

void KeyGradients::placeTiles() {
  int64_t pitch = Sm80Tiles::pitchOf(b.element, shape.dim),
          valuePitch = Sm80Tiles::pitchOf(b.element, shape.valueDim);
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
  scores.placeHead(group);
  const Head &head = scores.head;
  qRows = slabOf(b, headTensorOf(b, kernel, op.getQ()), head.batch, head.head);
  doutRows = slabOf(b, headTensorOf(b, kernel, op.getDout()), head.batch, head.head);
  Value number = b.mul(scores.headNumber(), plan.rowStride);
  lse = b.shift(b.scratch(b.getF32Type()), b.add(number, plan.lse));
  delta = b.shift(b.scratch(b.getF32Type()), b.add(number, plan.delta));
}

Value KeyGradients::numbersAt(Value base, Value turn) {
  return b.shiftBytes(base, b.mul(b.rem(turn, 2), config.blockCols * 4));
}

void KeyGradients::fetch(Value turn) {
  int64_t rows = config.blockCols;
  bool whole = scores.wholeRows();
  Value first = b.mul(scores.blocks->at(turn), rows);
  b.copyAsync(stageOf(b, qTile, rows, turn), qRows, first, rows, whole);
  b.copyAsync(stageOf(b, doutTile, rows, turn), doutRows, first, rows, whole);
  b.copyWordsAsync(numbersAt(lseTile, turn), lse, first, rows, shape.rows);
  b.copyWordsAsync(numbersAt(deltaTile, turn), delta, first, rows, shape.rows);
}

Value KeyGradients::normAt(Value base, Value turn, int64_t at) {
  Value own = b.shiftBytes(numbersAt(base, turn), b.mul(b.colOfLane(), 4));
  return LLVM::LoadOp::create(b, b.loc, b.getF32Type(), b.shiftBytes(own, at * 4));
}

SmallVector<Value> KeyGradients::gradientsOf(const Fragment &s, const Fragment &dp, Value turn,
                                             bool masked, ArrayRef<Value> drawn,
                                             ArrayRef<Value> columns) {
  auto of = [&](Value base) {
    return [this, base, turn](int64_t at) { return normAt(base, turn, at); };
  };
  ArrayRef<Value> cotangents = wantsK ? ArrayRef(dp.registers) : ArrayRef<Value>();
  Value firstRow = b.mul(scores.blocks->at(turn), config.blockCols);
  auto endsBlock = [](int64_t, ArrayRef<Value>) { return true; };
  return scores.emit(s.registers, cotangents, firstRow, of(lseTile), of(deltaTile), masked, drawn,
                     columns, endsBlock);
}

KeyGradients::Sums KeyGradients::processBlock(Value number, Sums sums) {
  Value next = b.add(number, 1);
  b.waitForCopies(0);
  b.barrier();
  b.when(b.isLess(next, scores.blocks->count), [&] { fetch(next); });
  b.commit();
  SharedTile q = stageOf(b, qTile, config.blockCols, number),
             dout = stageOf(b, doutTile, config.blockCols, number);
  SmallVector<Value> both, drawn = scores.draw(b.mul(scores.blocks->at(number), config.blockCols));
  Fragment none = b.fill(scores.layout, b.number(0)), dp = none;
  Fragment s = b.multiplyRows(none, rowsOfWarp(b, kTile, config.warpRows()), q,
                              Sm80Tiles::paddedCols(shape.dim));
  if (wantsK)
    dp = b.multiplyRows(none, rowsOfWarp(b, vTile, config.warpRows()), dout,
                        Sm80Tiles::paddedCols(shape.valueDim));
  // Factors of f32 products take twice the registers, which the values of the next steps then lack.
  if (b.element.isF32() || scores.mixes())
    b.endBlock();
  auto emit = [&](bool masked) { return gradientsOf(s, dp, number, masked, drawn, sums.columns); };
  if (!scores.isEverMasked()) {
    both = emit(false);
  } else {
    SmallVector<Type> types(s.registers.size() * (wantsK ? 2 : 1) + sums.columns.size(),
                            b.getF32Type());
    both = b.choose(
        scores.blocks->isFree(scores.blocks->at(number)), types, [&] { return emit(false); },
        [&] { return emit(true); });
  }
  sums.columns.assign(both.end() - sums.columns.size(), both.end());
  ArrayRef<Value> all = ArrayRef(both).drop_back(sums.columns.size());
  if (wantsV)
    sums.dv = b.multiplyAcross(
        sums.dv, {scores.layout, llvm::to_vector(all.take_front(s.registers.size()))}, dout);
  if (wantsK)
    sums.dk = b.multiplyAcross(
        sums.dk, {scores.layout, llvm::to_vector(all.take_back(s.registers.size()))}, q);
  return sums;
}

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
  int64_t products =
      (wantsK ? keyLayout.numRegisters() : 0) + (wantsV ? valueLayout.numRegisters() : 0);
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
    // Wait until all warps have finished reading the buffers of the previous head.
    b.barrier();
  // LLVM computes the addresses of the first copies before the loop over heads. In f32, the
  // products of this loop leave too few registers for these addresses.
  b.when(b.isLess(zero, scores.blocks->count),
         [&] { fetch(b.element.isF32() && shape.group > 1 ? b.opaque(zero) : zero); });
  b.commit();
  sums.columns = scores.emptyColumns();
  sums =
      sumsOf(b.loop(zero, scores.blocks->count, 1, flat(sums), [&](Value number, ValueRange state) {
        return flat(processBlock(number, sumsOf(state)));
      }));
  scores.storeColumns(sums.columns);
  sums.columns.clear();
  return sums;
}

void KeyGradients::emit() {
  placeUnit();
  placeTiles();
  bool whole = shape.cols % config.blockRows() == 0;
  b.copyAsync(kTile, kRows, scores.firstKey, config.blockRows(), whole);
  b.copyAsync(vTile, vRows, scores.firstKey, config.blockRows(), whole);
  b.commit();
  Sums none{b.fill(keyLayout, b.number(0)), b.fill(valueLayout, b.number(0)), {}};
  Value zero = b.i32(0);
  Sums sums = shape.group == 1 ? emitHead(zero, none)
                               : sumsOf(b.loop(zero, b.i32(shape.group), 1, flat(none),
                                               [&](Value group, ValueRange state) {
                                                 return flat(emitHead(group, sumsOf(state)));
                                               }));
  b.waitForCopies(0);
  ArrayRef<Value> numbers = scores.numbers;
  SmallVector<Value> scale(numbers.size(), b.number(op.getScale().convertToDouble())),
      one(numbers.size());
  auto rowsOf = [&](const HeadTensor &out) { return slabOf(b, out, scores.batch, scores.kvHead); };
  if (HeadTensor out = headTensorOf(b, kernel, op.getDk()); wantsK && out.place.base)
    storeRows(b, sums.dk, numbers, scale, rowsOf(out));
  if (HeadTensor out = headTensorOf(b, kernel, op.getDv()); wantsV && out.place.base)
    storeRows(b, sums.dv, numbers, one, rowsOf(out));
}

void attention::emitKeyGradients(Sm80Tiles &b, const Sm80Problem &problem, const Sm80Config &config,
                                 const KeyOrder &order, bool wantsK, bool wantsV) {
  KeyGradients(b, problem, config, order, wantsK, wantsV).emit();
}
