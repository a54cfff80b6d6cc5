//===- ScoreGradients.cpp - Weight and gradient of one score ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   P = 2^(score_mod(scale · x) · log2(e) - lse · log2(e)), 0 where masked
//   f = weight_mod;  dS = score_grad(P · (f · dp - δ)), 0 where masked
//
// Queries hold lse · log2(e). Without score_mod, scale · log2(e) is one factor.
// AttentionBackward.cpp emits the same formulas for vectors of a CPU, with other roundings.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Attention/Sm80Backward.h"
#include "SharedDraws.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

ScoreGradients::ScoreGradients(GpuBuilder &b, AttentionGradOp op, const Shape &shape,
                               const Head &head)
    : score(b, op.getScoreMod(), 1, shape, op.getCaptures(), head),
      mask(b, op.getMaskMod(), 0, shape, op.getCaptures(), head),
      weight(b, op.getWeightMod(), 0, shape, op.getCaptures(), head),
      grad(b, op.getScoreGrad(), 2, shape, op.getCaptures(), head), b(b),
      scale(op.getScale().convertToDouble()), rows(shape.rows) {}

Query ScoreGradients::query(Value number, Value exists, Value lse, Value delta) const {
  return {number,
          exists,
          lse,
          delta,
          score.ofRow(number),
          mask.ofRow(number),
          weight.ofRow(number),
          grad.ofRow(number)};
}

Key ScoreGradients::key(Value number, Value exists) const {
  return {number,
          exists,
          score.ofColumn(number),
          mask.ofColumn(number),
          weight.ofColumn(number),
          grad.ofColumn(number)};
}

/// Returns the condition that an element is not masked, or null if no element is masked.
Value ScoreGradients::kept(const Query &query, const Key &key, bool masked) const {
  Value keep = masked ? query.exists : Value();
  auto also = [&](Value condition) { keep = keep ? b.both(keep, condition) : condition; };
  if (key.exists)
    also(key.exists);
  if (masked && !mask.empty())
    also(mask.emit(query.mask, key.mask, query.number, key.number, {}));
  return keep;
}

/// Returns the weight P of an element.
Value ScoreGradients::weightOf(Value x, const Query &query, const Key &key, Value keep) const {
  Value y = x, factor = b.number((score.empty() ? scale : 1) * log2e);
  if (!score.empty())
    y = score.emit(query.score, key.score, query.number, key.number, {b.mulf(x, b.number(scale))});
  Value exponent = b.fma(y, factor, arith::NegFOp::create(b, b.loc, query.lse));
  // Without rounding errors, `exponent` would be at most 0. If the scores are very large, rounding
  // errors can make `exponent` positive, and P is then wrong. The limit of 127 keeps P finite.
  Value most = b.number(127),
        isMore = arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OGT, exponent, most);
  Value p = b.exp2(b.select(isMore, most, exponent));
  return keep ? b.select(keep, p, b.number(0)) : p;
}

std::pair<Value, Value> ScoreGradients::emit(Value x, Value dp, const Query &query, const Key &key,
                                             bool masked, const FragmentFunction::Values &drawn,
                                             Contribute contribute) const {
  Value keep = kept(query, key, masked), zero = b.number(0);
  Value p = weightOf(x, query, key, keep), mixed = p;
  if (!weight.empty()) {
    FragmentFunction::Values ofKey = key.weight;
    ofKey.insert_range(drawn);
    Value factor = weight.emit(query.weight, ofKey, query.number, key.number, {});
    if (keep)
      factor = b.select(keep, factor, zero);
    mixed = b.mulf(p, factor);
    if (dp)
      dp = b.mulf(dp, factor);
  }
  if (!dp)
    return {mixed, Value()};
  Value ds = b.mulf(p, b.subf(dp, query.delta));
  if (!score.empty()) {
    Value scaled = b.mulf(x, b.number(scale));
    FragmentFunction::Values values = query.grad;
    values.insert(key.grad.begin(), key.grad.end());
    Site site = grad.siteAt(query.number, key.number, {ds, scaled});
    auto at = [&](Value v) { return grad.function.emit(b, v, site, values); };
    ds = at(grad.function.result());
    if (contribute)
      contribute(at, site, values, keep);
    if (keep)
      ds = b.select(keep, ds, zero);
  }
  return {mixed, ds};
}

SmallVector<Value> ScoreGradients::drawRows(Layout layout, ArrayRef<Query> queries,
                                            Value firstKey) const {
  SharedDraws draws(b, weight, layout, /*keysAreRows=*/false);
  return draws.emit(queries[0].number, b.add(firstKey, b.colOfLane()), rows);
}

SmallVector<Value> ScoreGradients::emitRows(const Fragment &s, ArrayRef<Value> dp,
                                            ArrayRef<Query> queries, Value firstKey, int64_t cols,
                                            bool masked, ArrayRef<Value> drawn,
                                            ContributeRow contribute) const {
  // As in KeyScores::emit().
  if (!weight.empty())
    firstKey = b.opaque(firstKey);
  Value own = b.add(firstKey, b.colOfLane());
  bool checks = masked && cols % s.layout.numCols() != 0;
  SmallVector<std::optional<Key>> keys(s.layout.numCols());
  SharedDraws draws(b, weight, s.layout, /*keysAreRows=*/false);
  SmallVector<Value> ds;
  for (int64_t reg = 0; reg < s.layout.numRegisters(); ++reg) {
    int64_t at = s.layout.place(reg).second, row = s.layout.rowOf(reg);
    if (!keys[at]) {
      Value col = b.add(own, at);
      keys[at] =
          key(checks ? b.min(col, b.i32(cols - 1)) : col, checks ? b.isLower(col, cols) : Value());
    }
    auto also = [&](ValueAt valueAt, const Site &site, FragmentFunction::Values &values,
                    Value keep) {
      if (contribute)
        contribute(row, valueAt, site, values, keep);
    };
    ds.push_back(
        emit(s.registers[reg], dp[reg], queries[row], *keys[at], masked, draws.at(drawn, reg), also)
            .second);
  }
  return ds;
}
