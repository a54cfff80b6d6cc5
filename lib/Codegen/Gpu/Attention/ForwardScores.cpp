//===- ForwardScores.cpp - From scores to weights in registers --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The code computes the online softmax of a row. Without score_mod, c = log2(e) · scale and
//
//   m' = max(m, c · max(s));   a = exp2(m - m');   p = exp2(c · s - m');   l' = l · a + Σ p
//
// score_mod may return any number, for example -1e30 for elements to be ignored. With score_mod, c
// is log2(e) and
//
//   m' = max(m, max(s));   a = exp2(c (m - m'));   p = exp2(c (s - m'));   l' = l · a + Σ p
//
// The form without score_mod needs one instruction less. In this form, the rounding error of c ·
// max(s) affects exp2, but the results are correct for scores up to 2^30. Four lanes hold a row.
// Together they compute the maximum over the whole row. Each lane sums only its own columns, and
// finish() adds the sums of the four lanes. As long as all visited keys of a row are masked, m' is
// -inf. In this case exp2 uses 0 instead of m', so that all values stay 0.
//
//===----------------------------------------------------------------------===//

#include "ForwardScores.h"
#include "Codegen/Gpu/Attention/Functions/SharedDraws.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static constexpr double infinity = std::numeric_limits<double>::infinity();

ForwardScores::ForwardScores(GpuBuilder &b, AttentionOp op, const Shape &shape, Layout layout,
                             const Head &head)
    : score(b, op.getScoreMod(), 1, shape, op.getCaptures(), head),
      mask(b, op.getMaskMod(), 0, shape, op.getCaptures(), head),
      weight(b, op.getWeightMod(), 0, shape, op.getCaptures(), head), b(b), op(op), shape(shape),
      layout(layout), head(head) {}

bool ForwardScores::foldsScale() const {
  return score.empty() && op.getScale().convertToDouble() > 0;
}

Value ForwardScores::factor() const {
  return b.number((foldsScale() ? op.getScale().convertToDouble() : 1) * log2e);
}

/// Returns the number whose maximum over a row is m: c · score without score_mod, otherwise the
/// score.
Value ForwardScores::toMax(Value score) const {
  return foldsScale() ? b.mulf(score, factor()) : score;
}

/// Returns the exponential of x - shift. `x` and `shift` are results of toMax(), or maxima of such
/// results.
Value ForwardScores::expOf(Value x, Value shift) const {
  Value distance = b.subf(x, shift);
  return b.exp2(foldsScale() ? distance : b.mulf(distance, factor()));
}

ForwardScores::State ForwardScores::start() {
  return {SmallVector<Value>(rowsOfLane(), b.number(-infinity)),
          SmallVector<Value>(rowsOfLane(), b.number(0))};
}

void ForwardScores::placeRows(Value first) {
  for (int64_t i = 0; i < rowsOfLane(); ++i) {
    Value number = b.add(first, 8 * i), existing = b.min(number, b.i32(shape.rows - 1));
    rows.push_back(
        {number, existing, score.ofRow(existing), mask.ofRow(existing), weight.ofRow(existing)});
  }
}

SmallVector<Value> ForwardScores::rowNumbers() const {
  return llvm::map_to_vector(rows, [](const Row &row) { return row.number; });
}

/// The values that depend only on a column are computed once and used for all rows.
Fragment ForwardScores::modify(Fragment s, Value firstCol, bool masked, bool endsBlocks) const {
  bool ends = endsBlocks && masked && readsTensors(op.getScoreMod());
  Value own = b.add(firstCol, b.colOfLane()), scale = b.number(op.getScale().convertToDouble());
  SmallVector<std::pair<FragmentFunction::Values, FragmentFunction::Values>> columns(
      layout.numCols());
  SmallVector<std::pair<Value, Value>> places(layout.numCols());
  for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
    int64_t at = layout.place(reg).second;
    const Row &row = rows[layout.rowOf(reg)];
    if (!places[at].first) {
      Value col = b.add(own, at),
            existing = masked && !wholeCols() ? b.min(col, b.i32(shape.cols - 1)) : col;
      places[at] = {col, existing};
      columns[at] = {score.ofColumn(existing),
                     masked ? mask.ofColumn(existing) : FragmentFunction::Values()};
    }
    auto [col, existing] = places[at];
    Value x = s.registers[reg];
    if (!foldsScale())
      x = b.mulf(x, scale);
    if (!score.empty())
      x = score.emit(row.score, columns[at].first, row.existing, existing, {x});
    if (masked) {
      Value keep = wholeCols() ? Value() : b.isLower(col, shape.cols);
      if (!mask.empty()) {
        Value kept = mask.emit(row.mask, columns[at].second, row.existing, existing, {});
        keep = keep ? b.both(keep, kept) : kept;
      }
      x = b.select(keep, x, b.number(-infinity));
    }
    s.registers[reg] = x;
    if (ends && reg % 16 == 15)
      b.endBlock(/*productsRun=*/true);
  }
  return s;
}

Fragment ForwardScores::softmax(const Fragment &s, State &state,
                                SmallVector<Value> &correction) const {
  Fragment p = s;
  auto larger = [&](Value x, Value y) -> Value { return arith::MaxNumFOp::create(b, b.loc, x, y); };
  SmallVector<Value> most(layout.rowsOfLane()), shift, sums(layout.rowsOfLane());
  for (auto [reg, x] : llvm::enumerate(s.registers)) {
    Value &all = most[layout.rowOf(reg)];
    all = all ? larger(all, x) : x;
  }
  for (auto [i, all] : llvm::enumerate(most)) {
    Value after = larger(toMax(b.overQuad(all, larger)), state.max[i]);
    Value isEmpty =
        arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, after, b.number(-infinity));
    shift.push_back(b.select(isEmpty, b.number(0), after));
    correction.push_back(expOf(state.max[i], shift.back()));
    if (foldsScale())
      shift.back() = arith::NegFOp::create(b, b.loc, shift.back());
    state.max[i] = after;
  }
  for (auto [reg, x] : llvm::enumerate(s.registers)) {
    int64_t row = layout.rowOf(reg);
    p.registers[reg] = foldsScale() ? b.exp2(b.fma(x, factor(), shift[row])) : expOf(x, shift[row]);
    sums[row] = sums[row] ? b.addf(sums[row], p.registers[reg]) : p.registers[reg];
  }
  for (auto [i, sum] : llvm::enumerate(sums))
    state.sum[i] = b.fma(state.sum[i], correction[i], sum);
  return p;
}

SmallVector<Value> ForwardScores::draw(Value firstCol) const {
  SharedDraws draws(b, weight, layout, /*keysAreRows=*/false);
  return draws.emit(rows[0].number, b.add(firstCol, b.colOfLane()), shape.rows);
}

Fragment ForwardScores::weigh(Fragment p, Value firstCol, ArrayRef<Value> drawn) const {
  if (weight.empty())
    return p;
  Value own = b.add(firstCol, b.colOfLane());
  SharedDraws draws(b, weight, layout, /*keysAreRows=*/false);
  for (auto [reg, x] : llvm::enumerate(p.registers)) {
    const Row &row = rows[layout.rowOf(reg)];
    Value col = b.min(b.add(own, layout.place(reg).second), b.i32(shape.cols - 1));
    FragmentFunction::Values column = weight.ofColumn(col);
    column.insert_range(draws.at(drawn, reg));
    Value factor = weight.emit(row.weight, column, row.existing, col, {});
    Value isNone = arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, x, b.number(0)),
          product = b.mulf(x, factor);
    x = isFinite(weight.function.result()) ? product : b.select(isNone, b.number(0), product);
    if (reg % 16 == 15)
      b.endBlock(/*productsRun=*/true);
  }
  return p;
}

SmallVector<Value> ForwardScores::finish(const State &state, const Pointer &lse) const {
  SmallVector<Value> inverses;
  Value number = b.add(b.mul(head.batch, shape.heads), head.head);
  for (int64_t i = 0; i < rowsOfLane(); ++i) {
    Value total = b.overQuad(state.sum[i], [&](Value x, Value y) { return b.addf(x, y); });
    Value isEmpty = arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, total, b.number(0));
    Value inverse = arith::DivFOp::create(b, b.loc, b.number(1), total);
    inverses.push_back(b.select(isEmpty, b.number(0), inverse));
    if (!lse.base)
      continue;
    Value most = foldsScale() ? b.mulf(state.max[i], b.number(ln2)) : state.max[i];
    Value value = b.addf(most, math::LogOp::create(b, b.loc, total));
    Value isFirst = b.isEqual(b.rem(b.lane(), 4), 0);
    b.when(b.both(isFirst, b.isLower(rows[i].number, shape.rows)), [&] {
      Pointer place = b.shift(b.shift(lse, b.mul(number, shape.rows)), b.to64(rows[i].number));
      b.store(b.select(isEmpty, b.number(-infinity), value), place);
    });
  }
  return inverses;
}
