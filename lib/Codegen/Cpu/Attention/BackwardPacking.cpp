//===- BackwardPacking.cpp - Operands of gradients of attention --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Packs the rows of Q, dO and O of the query heads of one kv head, and a block of columns of K and
// V. Also computes δ = Σ O·dO of each row, and copies the log-sum-exp. The log-sum-exp of rows
// beyond the end, and of rows that are entirely masked, is set to infinity, so that P is 0 in these
// rows.
//
//===----------------------------------------------------------------------===//

#include "AttentionBackward.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static constexpr double infinity = std::numeric_limits<double>::infinity();

/// Returns those rows of a head's packed matrix that begin at `row`. If `across` is true, the
/// matrix was packed across rows, otherwise along rows.
Matrix BackwardEmitter::rowsOf(const Part &part, Value group, Value row, bool across) {
  Matrix all = matrix(part, plan.numbers.stepType());
  Value first = b.add(b.mul(group, plan.paddedRows), row);
  if (across)
    first = b.div(first, plan.numbers.perStep());
  return {b.at(all, first, b.constant(0)), all.rowStride, 1};
}

/// Returns the matrix in which the dQ of a head is summed, in the wide type (f32 or f64).
Matrix BackwardEmitter::dqOf(const Head &head, Value group, Value chunk) {
  int64_t elements = plan.paddedRows * plan.dq.stride;
  if (units.chunks == 1) {
    Matrix all = matrix(plan.dq, plan.numbers.wide);
    return {b.shift(all.place, b.mul(group, elements)), all.rowStride, 1};
  }
  Value number = b.add(b.mul(b.add(b.mul(chunk, shape.batch), head.batch), shape.heads), head.head);
  Pointer all{b.address(b.shift(shared, b.constant(plan.dqShared))), plan.numbers.wide,
              b.mul(number, elements)};
  return {all, plan.dq.stride, 1};
}

void BackwardEmitter::packRows(const Head &head, Value group) {
  int64_t lanes = plan.numbers.rowLanes, d = plan.padded(shape.dim),
          dv = plan.padded(shape.valueDim);
  Type wide = plan.numbers.wide;
  Value zero = b.constant(0), rows = b.constant(shape.rows);
  auto matrixOf = [&](Value heads) { return headOf(place(kernel, heads), head.batch, head.head); };
  Matrix q = matrixOf(op.getQ()), dout = matrixOf(op.getDout()), o = matrixOf(op.getO());
  Value number = b.add(b.mul(head.batch, shape.heads), head.head);
  Pointer lse = b.shift(binding(op.getLse()), b.mul(number, shape.rows));
  b.packAlong(q, {rows, shape.dim}, rowsOf(plan.q, group, zero, false), plan.paddedRows,
              plan.paddedAlong(shape.dim));
  b.packAlong(dout, {rows, shape.valueDim}, rowsOf(plan.dout, group, zero, false), plan.paddedRows,
              plan.paddedAlong(shape.valueDim));
  if (!plan.isFma()) {
    b.packAcross(q, {rows, shape.dim}, rowsOf(plan.qAcross, group, zero, true), plan.paddedRows, d);
    b.packAcross(dout, {rows, shape.valueDim}, rowsOf(plan.doutAcross, group, zero, true),
                 plan.paddedRows, dv);
  }
  Pointer ownLse = b.shift(scratch(plan.lse, wide), b.mul(group, plan.paddedRows));
  Pointer ownDelta = b.shift(scratch(plan.delta, wide), b.mul(group, plan.paddedRows));
  b.loop(zero, b.constant(plan.paddedRows), 1, [&](Value row) {
    b.store(b.number(infinity), b.shift(ownLse, row));
    b.store(b.number(0), b.shift(ownDelta, row));
  });
  b.loop(zero, rows, 1, [&](Value row) {
    Value x = b.load(wide, b.shift(lse, row));
    Value isEmpty =
        arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, x, b.number(-infinity));
    b.store(b.select(isEmpty, b.number(infinity), x), b.shift(ownLse, row));
    Value sum = b.number(0, lanes);
    for (int64_t col = 0; col < dv; col += lanes) {
      Value mask = b.maskBelow(lanes, b.constant(shape.valueDim - col));
      auto of = [&](const Matrix &x) {
        return b.convertFloat(
            b.load(VectorType::get({lanes}, x.place.type), b.at(x, row, b.constant(col)), mask),
            wide);
      };
      sum = b.fma(of(o), of(dout), sum);
    }
    b.store(b.first(b.sumOfLanes(sum)), b.shift(ownDelta, row));
  });
}

void BackwardEmitter::packBlock(const Head &head, Value block) {
  Value first = b.mul(block, plan.blockCols), rows = b.sub(b.constant(shape.cols), first);
  Type step = plan.numbers.stepType();
  auto from = [&](Value heads) {
    Matrix all = headOf(place(kernel, heads), head.batch, head.kvHead);
    return Matrix{b.at(all, first, b.constant(0)), all.rowStride, 1};
  };
  Matrix k = from(op.getK()), v = from(op.getV());
  b.packTransposed(k, {rows, shape.dim}, matrix(plan.kT, step), plan.blockCols, shape.dim);
  b.packTransposed(v, {rows, shape.valueDim}, matrix(plan.vT, step), plan.blockCols,
                   shape.valueDim);
  b.packAcross(k, {rows, shape.dim}, matrix(plan.kAcross, step), plan.blockCols,
               plan.padded(shape.dim));
}
