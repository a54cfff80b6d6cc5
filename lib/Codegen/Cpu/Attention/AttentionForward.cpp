//===- AttentionForward.cpp - Attention without storing scores --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Emits one phase. A unit of work is a block of rows of one head. A worker packs K and V of a head
// when it starts its first unit of that head:
//
//   m = -inf, l = 0, O = 0                              for each row
//   for each block of columns                           unless it is entirely masked
//     S = Q · Kᵀ                                        tile
//     S = score_mod(scale · S), -inf where masked       only if necessary
//     m' = max(m, max S · c);  a = 2^(m - m')           c = log2(e) · scale without score_mod;
//     P = 2^(S · c - m');  l = l · a + Σ P;  m = m'     with one: max S, c (m - m'), c (S - m')
//     P = P · weight_mod                                after the sums, if weight_mod exists
//     O = O · a + P · V                                 tile
//   O / l, lse = ln2 · m + ln(l), or m + ln(l) with score_mod;  0 and -inf where l = 0;
//
// Arrays hold m and l for each row of a tile. The l of a row is a vector of 512 bits that contains
// partial sums. The units of work of a worker are blocks of rows, taken alternately from the
// beginning and from the end of the rows. With a causal mask, workers with the same number of units
// then need about the same time. The kernel takes about as long as two matrix products over all
// blocks that are not entirely masked. The scratch of a worker holds K and V of one head, a tile of
// scores and a tile of O.
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "AttentionEmit.h"
#include "Codegen/Kernel/Lowering.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {
struct ForwardPlan : Plan {
  ForwardPlan(const Shape &shape, const Numbers &numbers);
  Part q, k, v, scores, o, max, sum, correction, factors, bounds;
};

class ForwardEmitter : public Emitter {
public:
  ForwardEmitter(CpuTiles &b, ForwardPlan &plan, AttentionOp op, func::FuncOp kernel)
      : Emitter(b, plan), plan(plan), op(op), kernel(kernel),
        ranges(AttentionTiles(op).getKeyTiles(plan.blockCols)) {
    plan.bounds = plan.take(std::max<int64_t>(ranges.size(), 1), 4, sizeof(int64_t));
    if (!op.getWeightMod().empty())
      plan.factors = plan.take(1, plan.blockCols, plan.numbers.wide.getIntOrFloatBitWidth() / 8);
  }
  void emit(func::FuncOp phase);

private:
  bool foldsScale() { return op.getScoreMod().empty() && op.getScale().convertToDouble() > 0; }
  bool hasMask() { return !op.getMaskMod().empty() || shape.cols % plan.blockCols; }
  Matrix keys(Value block);
  Matrix values(Value block);
  void packHead(const Head &head);
  void emitUnit(const Head &head, Value rowBlock);
  void emitBlock(const Head &head, Value firstRow, Value rows, Value block, Value isFree);
  void modify(const Head &head, Value firstRow, Value rows, Value firstCol, bool masked);
  void emitFactors(const Head &head, Value firstRow, Value row, Value firstCol);
  void softmax(const Head &head, Value firstRow, Value rows, Value firstCol);
  void finish(const Head &head, Value firstRow, Value rows);
  Pointer perRow(const Part &part, Value row) {
    return b.shift(scratch(part, plan.numbers.wide), b.mul(row, part.stride));
  }

  ForwardPlan &plan;
  AttentionOp op;
  func::FuncOp kernel;
  std::optional<KeptFunction> score, mask, weight;
  SmallVector<TileRange> ranges;
  // The results. The base of a pointer is null if the kernel does not return the result.
  Heads o;
  Pointer lse;
};
} // namespace

ForwardPlan::ForwardPlan(const Shape &shape, const Numbers &numbers) : Plan(shape, numbers) {
  blockCols = std::min<int64_t>(mostCols, paddedAlong(shape.cols));
  blockRows = std::min(mostRows, shape.rows);
  rowBlocks = llvm::divideCeil(shape.rows, blockRows);
  colBlocks = llvm::divideCeil(shape.cols, blockCols);
  tileRows = numbers.wholeRows(blockRows);
  int64_t wide = numbers.wide.getIntOrFloatBitWidth() / 8, step = numbers.stepBytes();
  q = take(tileRows, paddedAlong(shape.dim) / numbers.perStep(), step);
  k = take(colBlocks * transposedSteps(shape.dim), blockCols, step);
  v = take(colBlocks * blockCols / numbers.perStep(), padded(shape.valueDim), step);
  scores = take(tileRows, blockCols, wide);
  o = take(tileRows, padded(shape.valueDim), wide);
  max = take(tileRows, 1, wide);
  sum = take(tileRows, numbers.rowLanes, wide);
  correction = take(tileRows, 1, wide);
}

/// Returns Kᵀ of a block: a matrix of steps × columns.
Matrix ForwardEmitter::keys(Value block) {
  Matrix all = matrix(plan.k, plan.numbers.stepType());
  all.place = b.shift(all.place, b.mul(block, plan.transposedSteps(shape.dim) * plan.blockCols));
  return all;
}

Matrix ForwardEmitter::values(Value block) {
  Matrix all = matrix(plan.v, plan.numbers.stepType());
  all.place =
      b.shift(all.place, b.mul(block, plan.blockCols / plan.numbers.perStep() * plan.v.stride));
  return all;
}

void ForwardEmitter::packHead(const Head &head) {
  Matrix k = headOf(place(kernel, op.getK()), head.batch, head.kvHead);
  Matrix v = headOf(place(kernel, op.getV()), head.batch, head.kvHead);
  b.loop(b.constant(0), b.constant(plan.colBlocks), 1, [&](Value block) {
    Value first = b.mul(block, plan.blockCols), rows = b.sub(b.constant(shape.cols), first);
    auto from = [&](const Matrix &x) {
      return Matrix{b.at(x, first, b.constant(0)), x.rowStride, 1};
    };
    b.packTransposed(from(k), {rows, shape.dim}, keys(block), plan.blockCols, shape.dim);
    b.packAcross(from(v), {rows, shape.valueDim}, values(block), plan.blockCols,
                 plan.padded(shape.valueDim));
  });
}

/// Applies the scale, score_mod and mask_mod to the scores in memory.
void ForwardEmitter::modify(const Head &head, Value firstRow, Value rows, Value firstCol,
                            bool masked) {
  Matrix s = matrix(plan.scores, plan.numbers.wide);
  int64_t lanes = plan.numbers.rowLanes;
  auto layout = Layout::rowVectors(1, lanes, lanes);
  bool scales = !foldsScale();
  Value scale = b.number(op.getScale().convertToDouble(), lanes), none = b.number(-infinity, lanes);
  b.loop(b.constant(0), rows, 1, [&](Value row) {
    ScoreFunction::Values scoreRow = knownOfRow(*score, row), maskRow = knownOfRow(*mask, row);
    b.loop(b.constant(0), b.constant(plan.blockCols), lanes, [&](Value col) {
      Matrix here{b.at(s, row, col), s.rowStride, 1};
      Site site{head.batch, head.head, b.add(firstRow, row), b.add(firstCol, col), {}, {}, lanes};
      if (masked)
        site.lastColumn = b.constant(shape.cols - 1);
      Fragment x = b.map(b.load(layout, here), [&](Value value, int64_t) {
        if (scales)
          value = b.mulf(value, scale);
        if (!score->function.empty()) {
          site.scores = {value};
          ScoreFunction::Values values = known(*score, scoreRow, col);
          value = splatted(score->function.emit(b, score->function.result(), site, values));
        }
        return masked ? b.select(keptLanes(*mask, maskRow, site, col), value, none) : value;
      });
      b.store(x, here);
    });
  });
}

/// Computes weight_mod for a row of a tile. Columns after the last column of the matrix get the
/// factor of the last column.
void ForwardEmitter::emitFactors(const Head &head, Value firstRow, Value row, Value firstCol) {
  int64_t lanes = plan.numbers.rowLanes;
  ScoreFunction::Values ofRow = knownOfRow(*weight, row);
  b.loop(b.constant(0), b.constant(plan.blockCols), lanes, [&](Value col) {
    Site site{head.batch,
              head.head,
              b.add(firstRow, row),
              b.add(firstCol, col),
              b.constant(shape.cols - 1),
              {},
              lanes};
    ScoreFunction::Values values = known(*weight, ofRow, col);
    Value factor = splatted(weight->function.emit(b, weight->function.result(), site, values));
    b.store(factor, b.shift(scratch(plan.factors, plan.numbers.wide), col));
  });
}

/// Replaces S by P and updates the maximum, the sum and the correction of each row.
void ForwardEmitter::softmax(const Head &head, Value firstRow, Value rows, Value firstCol) {
  Matrix s = matrix(plan.scores, plan.numbers.wide),
         p = matrix(plan.scores, plan.numbers.stepType());
  int64_t lanes = plan.numbers.rowLanes;
  Type wide = plan.numbers.wide;
  auto layout = Layout::rowVectors(1, plan.blockCols, lanes);
  // With score_mod, the factor c does not include the scale, and a score may be arbitrarily large.
  // In this case, the code first subtracts the maximum and then multiplies by c. If the code
  // multiplied a large score by c first, the rounding error would cause a large error of exp2.
  bool folds = foldsScale();
  Value c = b.number(folds ? op.getScale().convertToDouble() * log2e : log2e, lanes),
        none = b.number(-infinity, lanes);
  auto expOf = [&](Value distance) { return b.exp2(folds ? distance : b.mulf(distance, c)); };
  b.loop(b.constant(0), rows, 1, [&](Value row) {
    Fragment x = b.load(layout, {b.at(s, row, b.constant(0)), s.rowStride, 1});
    Pointer max = perRow(plan.max, row), sum = perRow(plan.sum, row);
    Value before = b.broadcastLoad(max, lanes);
    Value most = b.rowMax(x).front(), after = b.larger(folds ? b.mulf(most, c) : most, before);
    Value isEmpty = arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, after, none);
    Value shift = b.select(isEmpty, b.number(0, lanes), after);
    Value minus = arith::NegFOp::create(b, b.loc, shift);
    Fragment e = b.map(x, [&](Value value, int64_t) {
      return folds ? b.exp2(b.fma(value, c, minus)) : expOf(b.subf(value, shift));
    });
    Value correction = expOf(b.subf(before, shift));
    auto vector = VectorType::get({lanes}, wide);
    b.store(b.fma(b.load(vector, sum), correction, b.rowSum(e).front()), sum);
    b.store(b.first(after), max);
    b.store(b.first(correction), perRow(plan.correction, row));
    if (!weight->function.empty())
      emitFactors(head, firstRow, row, firstCol);
    for (auto [reg, value] : llvm::enumerate(e.registers)) {
      Value col = b.constant(layout.place(reg).second);
      if (!weight->function.empty()) {
        Value factor = b.load(vector, b.shift(scratch(plan.factors, wide), col)),
              zero = b.number(0, lanes);
        Value isNone = arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, value, zero);
        // A masked element may have a factor of NaN or infinity, but its P must be 0.
        value = b.select(isNone, zero, b.mulf(value, factor));
      }
      b.storeAlong(value, p, row, col);
    }
  });
}

void ForwardEmitter::emitBlock(const Head &head, Value firstRow, Value rows, Value block,
                               Value isFree) {
  Numbers numbers = plan.numbers;
  Value firstCol = b.mul(block, plan.blockCols);
  for (KeptFunction *f : {&*score, &*mask, &*weight})
    emitColumns(*f, head, firstCol);
  Matrix s = matrix(plan.scores, numbers.wide), p = matrix(plan.scores, numbers.stepType());
  Matrix q = matrix(plan.q, numbers.stepType()), o = matrix(plan.o, numbers.wide);
  b.gemm(s, q, keys(block), plan.blockRows, plan.blockCols, plan.dimSteps(), CpuTiles::Sums::Zero);

  bool always = !score->function.empty() || !foldsScale();
  auto change = [&](bool masked) { modify(head, firstRow, rows, firstCol, masked); };
  if (hasMask())
    b.when(isFree, [&] { always ? change(false) : void(); }, [&] { change(true); });
  else if (always)
    change(false);
  softmax(head, firstRow, rows, firstCol);

  b.gemm(o, p, values(block), plan.blockRows, shape.valueDim, numbers.steps(plan.blockCols),
         CpuTiles::Sums::Kept,
         [&](Value row) { return b.broadcastLoad(perRow(plan.correction, row), numbers.lanes); });
}

/// Stores O and the log-sum-exps of those rows that exist in the tensors.
void ForwardEmitter::finish(const Head &head, Value firstRow, Value rows) {
  int64_t lanes = plan.numbers.rowLanes;
  Type wide = plan.numbers.wide;
  auto vector = VectorType::get({lanes}, wide);
  Matrix sums = matrix(plan.o, wide);
  b.loop(b.constant(0), rows, 1, [&](Value row) {
    Value total = b.sumOfLanes(b.load(vector, perRow(plan.sum, row)));
    Value isEmpty =
        arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OEQ, total, b.number(0, lanes));
    Value inverse = arith::DivFOp::create(b, b.loc, b.number(1, lanes), total);
    inverse = b.select(isEmpty, b.number(0, lanes), inverse);
    if (o.tensor.base) {
      Matrix out = headOf(o, head.batch, head.head);
      b.loop(b.constant(0), b.constant(plan.padded(shape.valueDim)), lanes, [&](Value col) {
        Value value = b.mulf(b.load(vector, b.at(sums, row, col)), inverse);
        Value mask = b.maskBelow(lanes, b.sub(b.constant(shape.valueDim), col));
        b.store(b.convertFloat(value, out.place.type), b.at(out, b.add(firstRow, row), col), mask);
      });
    }
    if (!lse.base)
      return;
    Value number = b.add(b.mul(head.batch, shape.heads), head.head);
    Value max = b.load(wide, perRow(plan.max, row));
    Value value = b.addf(foldsScale() ? b.mulf(max, b.number(ln2)) : max,
                         math::LogOp::create(b, b.loc, b.first(total)));
    b.store(b.select(b.first(isEmpty), b.number(-infinity), value),
            b.shift(lse, b.add(b.mul(number, shape.rows), b.add(firstRow, row))));
  });
}

void ForwardEmitter::emitUnit(const Head &head, Value rowBlock) {
  Value firstRow = b.mul(rowBlock, plan.blockRows), left = b.sub(b.constant(shape.rows), firstRow);
  Value rows = b.min(left, b.constant(plan.blockRows));
  for (KeptFunction *f : {&*score, &*mask, &*weight}) {
    Emitter::emitUnit(*f, head);
    emitRows(*f, head, firstRow, plan.blockRows);
  }
  Matrix q = headOf(place(kernel, op.getQ()), head.batch, head.head);
  b.packAlong({b.at(q, firstRow, b.constant(0)), q.rowStride, 1}, {left, shape.dim},
              matrix(plan.q, plan.numbers.stepType()), plan.tileRows, plan.paddedAlong(shape.dim));
  int64_t lanes = plan.numbers.rowLanes;
  Type wide = plan.numbers.wide;
  b.fillTile(matrix(plan.o, wide), plan.tileRows, plan.o.stride, b.number(0));
  b.fillTile(matrix(plan.sum, wide), plan.tileRows, lanes, b.number(0));
  b.loop(b.constant(0), b.constant(plan.tileRows), 1, [&](Value row) {
    b.store(b.number(-infinity), perRow(plan.max, row));
    b.store(b.number(0), perRow(plan.correction, row));
  });
  forBlocks(ranges, plan.bounds, *mask, head, firstRow, b.add(firstRow, rows),
            [&](Value block, Value isFree) { emitBlock(head, firstRow, rows, block, isFree); });
  finish(head, firstRow, rows);
}

void ForwardEmitter::emit(func::FuncOp phase) {
  enter(kernel, phase);
  score.emplace(keep(op.getScoreMod(), 1, op.getCaptures()));
  mask.emplace(keep(op.getMaskMod(), 0, op.getCaptures()));
  weight.emplace(keep(op.getWeightMod(), 0, op.getCaptures()));
  o = place(kernel, op.getO());
  lse = destination(kernel, op.getLse());
  int64_t perKvHead = shape.group * plan.rowBlocks;
  b.loop(b.div(begin, perKvHead), b.div(b.add(end, perKvHead - 1), perKvHead), 1,
         [&](Value kvHead) {
           Head head{b.div(kvHead, shape.kvHeads), Value(), b.rem(kvHead, shape.kvHeads)};
           packHead(head);
           Value first = b.mul(kvHead, perKvHead);
           Value from = b.max(b.sub(begin, first), b.constant(0)),
                 to = b.min(b.sub(end, first), b.constant(perKvHead));
           b.loop(from, to, 1, [&](Value unit) {
             head.head = b.add(b.mul(head.kvHead, shape.group), b.div(unit, plan.rowBlocks));
             Value turn = b.rem(unit, plan.rowBlocks), half = b.div(turn, 2);
             Value rowBlock = b.select(b.isEqual(b.rem(turn, 2), 0), half,
                                       b.sub(b.constant(plan.rowBlocks - 1), half));
             emitUnit(head, rowBlock);
           });
         });
}

LogicalResult attention::lowerForward(func::FuncOp kernel, AttentionOp op, const CpuTarget &target,
                                      KernelInfo &info) {
  Numbers numbers(cast<RankedTensorType>(op.getQ().getType()).getElementType(), target);
  ForwardPlan plan(getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType()),
                   numbers);
  CpuTiles b(op.getLoc(), op.getContext(), numbers);
  int64_t extent = plan.shape.batch * plan.shape.heads * plan.rowBlocks;
  func::FuncOp phase = createPhase(b, kernel, info.name, extent, 1, /*shared=*/false);
  ForwardEmitter(b, plan, op, kernel).emit(phase);
  info.phases.push_back({info.name, extent, 1});
  info.workerBytes = std::max(info.workerBytes, plan.workerBytes);
  kernel.erase();
  return success();
}
