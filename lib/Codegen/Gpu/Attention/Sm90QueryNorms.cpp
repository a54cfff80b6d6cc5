//===- Sm90QueryNorms.cpp - Norms of queries --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The code of emitNorms() computes lse · log2(e) and δ = Σ O·dO. Eight lanes together process a
// query. For queries without keys and for queries that do not exist, lse is inf. The code also sets
// the counts of additions to zero. If there is a mask, no block of keys may visit a block of
// queries, so dQ of queries without keys is set to 0. In a step of a ring, a query without keys may
// have a finite lse, because lse includes the keys of all ranks. The mask of such a step reads the
// number of the rank. So if the mask reads a tensor, dQ of all queries is set to 0.
// In f32, there are no counts, and the kernel that owns queries stores all of dQ.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Ptx/GpuRows.h"
#include "Sm90Backward.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr int64_t lanesOfQuery = 8, bytesOfLane = 16;

/// Returns the number of elements that a lane loads at once.
static int64_t numbersOf(Type element) { return bytesOfLane * 8 / element.getIntOrFloatBitWidth(); }

int64_t attention::normBlocks(const Sm80Problem &problem) {
  return problem.shape.batch * problem.shape.heads * problem.plan.rowStride /
         (normThreads / lanesOfQuery);
}

static Pointer placeOfRow(GpuBuilder &b, const HeadTensor &tensor, Value head, Value row) {
  return b.shift(tensor.place, b.add(tensor.offsetOf(b, head), b.mul(row, tensor.layout.row)));
}

/// Returns Σ O·dO of a row of a head, which is counted over all batches. The eight lanes of the row
/// compute the sum together.
static Value emitDelta(GpuBuilder &b, const Sm80Problem &problem, Value head, Value row) {
  AttentionGradOp op = problem.op;
  int64_t cols = problem.shape.valueDim, numbersOfLane = numbersOf(getElementTypeOrSelf(op.getO()));
  Value own = b.mul(b.rem(b.lane(), lanesOfQuery), numbersOfLane), delta = b.number(0);
  for (int64_t col = 0; col < cols; col += lanesOfQuery * numbersOfLane) {
    Value at = b.add(own, col),
          inRow = col + lanesOfQuery * numbersOfLane > cols ? b.isLower(at, cols) : Value();
    Value place = b.to64(inRow ? b.select(inRow, at, b.i32(0)) : at), sum = delta;
    auto load = [&](Value heads) {
      HeadTensor tensor = headTensorOf(b, problem.kernel, heads);
      return loadRow(b, b.shift(placeOfRow(b, tensor, head, row), place), numbersOfLane,
                     numbersOfLane);
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

/// Sets dQ of a query without keys to 0. The eight lanes of the row store it together.
static void clearQuery(GpuBuilder &b, const Sm80Problem &problem, Value head, Value row) {
  AttentionGradOp op = problem.op;
  HeadTensor tensor = headTensorOf(b, problem.kernel, op.getDq());
  if (!tensor.place.base || op.getMaskMod().empty())
    return;
  Pointer dq = placeOfRow(b, tensor, head, row);
  int64_t cols = problem.shape.dim, numbersOfLane = numbersOf(dq.type);
  SmallVector<Value> zeros(numbersOfLane, b.convertFloat(b.number(0), dq.type));
  Value own = b.mul(b.rem(b.lane(), lanesOfQuery), numbersOfLane);
  for (int64_t col = 0; col < cols; col += lanesOfQuery * numbersOfLane) {
    Value at = b.add(own, col);
    b.when(b.isLower(at, cols),
           [&] { storeRow(b, zeros, b.shift(dq, b.to64(at)), numbersOfLane); });
  }
}

void attention::emitNorms(GpuBuilder &b, const Sm80Problem &problem) {
  const Sm80Backward &plan = problem.plan;
  const Shape &shape = problem.shape;
  AttentionGradOp op = problem.op;
  bool adds = plan.keysOfGroups.has_value(); // blocks of keys to sums of dQ
  Value number = b.add(b.mul(b.to64(b.block()), normThreads / lanesOfQuery),
                       b.to64(b.div(b.thread(), lanesOfQuery)));
  Value head = b.div(number, plan.rowStride), row = b.rem(number, plan.rowStride),
        exists = b.isLower(row, shape.rows);
  Value existing = b.min(row, b.constant(shape.rows - 1)),
        place = b.add(b.mul(head, shape.rows), existing);
  Value delta = emitDelta(b, problem, head, existing),
        lse = b.load(b.getF32Type(), b.shift(b.binding(op.getLse()), place));
  Value isEmpty =
      arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, lse, b.number(-infinity));
  if (adds)
    b.when(readsTensors(op.getMaskMod()) ? exists : b.both(exists, isEmpty),
           [&] { clearQuery(b, problem, head, existing); });
  lse = b.select(b.both(exists, b.select(isEmpty, b.boolean(false), b.boolean(true))),
                 b.mulf(lse, b.number(log2e)), b.number(infinity));
  delta = b.select(exists, delta, b.number(0));
  b.when(b.isEqual(b.rem(b.lane(), lanesOfQuery), 0), [&] {
    Pointer scratch = b.scratch(b.getF32Type());
    b.store(lse, b.shift(scratch, b.add(number, plan.lse)));
    b.store(delta, b.shift(scratch, b.add(number, plan.delta)));
    if (!adds)
      return;
    int64_t queries = plan.keysOfGroups->blockQueries;
    if (plan.order.parts > 1)
      clearParts(b, plan, number, shape.batch * shape.heads * plan.rowStride);
    b.when(b.isEqual(b.rem(row, queries), 0), [&] {
      b.store(b.i32(0),
              b.shift(b.scratch(b.getI32Type()), b.add(b.div(number, queries), plan.added)));
    });
  });
}
