//===- Sm90QuerySums.cpp - Norms of queries and sums of dQ ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The code of emitNorms() computes lse · log2(e) and δ = Σ O·dO. Eight lanes together process a
// query. For queries without keys and for queries that do not exist, lse is inf. The code also sets
// the counts of additions to zero.
//
// The launch for dQ multiplies the sums by the scale and converts them to the type of dQ. QuerySums
// defines the layout of the sums. If no block of keys visits a block of queries, the memory of its
// sums is uninitialised, and dQ is set to 0.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Ptx/GpuRows.h"
#include "Sm90Backward.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr int64_t lanesOfQuery = 8, numbersOfLane = 8;

int64_t attention::normBlocks(const Sm80Problem &problem) {
  return problem.shape.batch * problem.shape.heads * problem.plan.rowStride /
         (normThreads / lanesOfQuery);
}

/// Returns Σ O·dO of a row. The eight lanes of the row compute the sum together.
static Value emitDelta(GpuBuilder &b, const Sm80Problem &problem, Value row) {
  AttentionGradOp op = problem.op;
  int64_t cols = problem.shape.valueDim;
  Value own = b.mul(b.rem(b.lane(), lanesOfQuery), numbersOfLane), delta = b.number(0);
  for (int64_t col = 0; col < cols; col += lanesOfQuery * numbersOfLane) {
    Value at = b.add(own, col),
          inRow = col + lanesOfQuery * numbersOfLane > cols ? b.isLower(at, cols) : Value();
    Value place = b.add(b.mul(row, cols), b.to64(inRow ? b.select(inRow, at, b.i32(0)) : at)),
          sum = delta;
    auto load = [&](Value tensor) {
      return loadRow(b, b.shift(b.binding(tensor), place), numbersOfLane, numbersOfLane);
    };
    for (auto [o, dout] : llvm::zip(load(op.getO()), load(op.getDout())))
      sum = b.fma(b.convertFloat(o, b.getF32Type()), b.convertFloat(dout, b.getF32Type()), sum);
    delta = inRow ? b.select(inRow, sum, delta) : sum;
  }
  for (int64_t bits = 1; bits < lanesOfQuery; bits *= 2)
    delta = b.addf(delta, b.exchange(delta, bits));
  return delta;
}

/// Sets counts of parts to zero: those with the indices `number`, `number` + `queries`, and so on.
static void clearParts(GpuBuilder &b, const Sm80Backward &plan, Value number, int64_t queries) {
  int64_t counts = plan.order.kvHeads * plan.order.keyBlocks;
  b.loop(number, b.constant(counts), queries, [&](Value count) {
    b.store(b.i32(0), b.shift(b.scratch(b.getI32Type()), b.add(count, plan.addedParts)));
  });
}

void attention::emitNorms(GpuBuilder &b, const Sm80Problem &problem) {
  const Sm80Backward &plan = problem.plan;
  const Shape &shape = problem.shape;
  AttentionGradOp op = problem.op;
  int64_t queries = plan.keysOfGroups->blockQueries;
  Value number = b.add(b.mul(b.to64(b.block()), normThreads / lanesOfQuery),
                       b.to64(b.div(b.thread(), lanesOfQuery)));
  Value head = b.div(number, plan.rowStride), row = b.rem(number, plan.rowStride),
        exists = b.isLower(row, shape.rows);
  Value place = b.add(b.mul(head, shape.rows), b.min(row, b.constant(shape.rows - 1)));
  Value delta = emitDelta(b, problem, place),
        lse = b.load(b.getF32Type(), b.shift(b.binding(op.getLse()), place));
  Value isEmpty =
      arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, lse, b.number(-infinity));
  lse = b.select(b.both(exists, b.select(isEmpty, b.boolean(false), b.boolean(true))),
                 b.mulf(lse, b.number(log2e)), b.number(infinity));
  delta = b.select(exists, delta, b.number(0));
  b.when(b.isEqual(b.rem(b.lane(), lanesOfQuery), 0), [&] {
    Pointer scratch = b.scratch(b.getF32Type());
    b.store(lse, b.shift(scratch, b.add(number, plan.lse)));
    b.store(delta, b.shift(scratch, b.add(number, plan.delta)));
    if (plan.order.parts > 1)
      clearParts(b, plan, number, shape.batch * shape.heads * plan.rowStride);
    b.when(b.isEqual(b.rem(row, queries), 0), [&] {
      b.store(b.i32(0),
              b.shift(b.scratch(b.getI32Type()), b.add(b.div(number, queries), plan.added)));
    });
  });
}

int64_t attention::queriesOfSumsBlocks(const Sm80Problem &problem) {
  const Shape &shape = problem.shape;
  return shape.batch * shape.heads * problem.plan.rowStride /
         problem.plan.keysOfGroups->blockQueries;
}

void attention::emitQueriesOfSums(GpuBuilder &b, const Sm80Problem &problem) {
  const Sm80Backward &plan = problem.plan;
  const Shape &shape = problem.shape;
  AttentionGradOp op = problem.op;
  const Sm90Keys &config = *plan.keysOfGroups;
  QuerySums sums(config, shape);
  int64_t blocksOfHead = plan.rowStride / config.blockQueries, threads = Sm90Builder::groupThreads;
  Value number = b.to64(b.block()), own = b.to64(b.mul(b.rem(b.thread(), threads), 4));
  Value count =
      b.load(b.getI32Type(), b.shift(b.scratch(b.getI32Type()), b.add(number, plan.added)));
  Value first = b.add(b.add(b.mul(number, sums.floats()), plan.querySums), own);
  // If byColumns is true, the sums of a row belong to all warpgroups, otherwise to one warpgroup.
  int64_t parts = sums.byColumns ? sums.groups : 1;
  if (!sums.byColumns)
    first = b.add(first, b.mul(b.to64(b.div(b.thread(), threads)), sums.floatsOfGroup()));
  Layout layout = Layout::mmaSums(16, parts * sums.cols);
  SmallVector<Type> types(layout.numRegisters(), b.getF32Type());
  auto load = [&] {
    SmallVector<Value> all;
    for (int64_t part = 0; part < parts; ++part)
      for (int64_t i = 0; i < sums.registers(); i += 4)
        llvm::append_range(all,
                           loadRow(b,
                                   b.shift(b.scratch(b.getF32Type()),
                                           b.add(first, part * sums.floatsOfGroup() + i * threads)),
                                   4, 4));
    return all;
  };
  Fragment dq{layout, b.choose(
                          b.isEqual(count, 0), types,
                          [&] { return SmallVector<Value>(types.size(), b.number(0)); }, load)};
  Value head = b.div(number, blocksOfHead);
  Value row = b.add(
      b.add(b.mul(b.to32(b.rem(number, blocksOfHead)), config.blockQueries), b.mul(b.warp(), 16)),
      b.rowOfLane());
  SmallVector<Value> numbers = {row, b.add(row, 8)},
                     scale(2, b.number(op.getScale().convertToDouble()));
  Pointer out = b.destination(problem.kernel, op.getDq());
  storeRows(b, dq, numbers, scale,
            slabOf(b, out, b.div(head, shape.heads), b.rem(head, shape.heads), shape.heads,
                   shape.rows, shape.dim));
}
