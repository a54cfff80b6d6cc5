//===- AttentionBackward.cpp - Gradients without storing scores --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The blocks of columns of a kv head form one chunk, or several chunks if there are few kv heads. A
// unit of work processes one chunk of one kv head for all query heads that share this kv head:
//
//   pack Q and dO of the unit's heads;  δ = Σ O·dO for each row;  dQ = 0;
//   for each block of columns: pack its K and V;  dK = dV = 0;
//     for each head of the group, each block of rows           unless it is entirely masked
//       S = Q · Kᵀ;  dP = dO · Vᵀ                              tiles
//       P = 2^((score_mod(scale · S) - lse) · log2(e)), 0 where masked;
//       f = weight_mod;  dP = f · dP;
//       dS = score_grad(P · (dP - δ)), 0 where masked; contributions: AttentionCaptures.cpp;
//       dV += (f · P)ᵀ · dO;  dK += dSᵀ · Q;  dQ += dS · K           tiles
//     store scale · dK and dV;
//   store scale · dQ; with several chunks a second phase adds their dQ in order;
//
// A sum over rows adds its terms in the order of the rows. A sum over the columns of a chunk adds
// its terms in the order of the columns. The division into chunks depends only on the shape.
// Therefore the bits of the results depend neither on the number of workers nor on the vector
// length. The kernel takes about as long as five matrix products over all blocks that are not
// entirely masked. The scratch of a worker holds Q, dO and dQ of the query heads of one kv head. If
// there are several chunks, the shared scratch holds the dQ of each chunk for all heads.
//
//===----------------------------------------------------------------------===//

#include "AttentionBackward.h"
#include "Attention.h"
#include "Codegen/Kernel/Lowering.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

BackwardPlan::BackwardPlan(const Shape &shape, const Numbers &numbers) : Plan(shape, numbers) {
  blockCols = std::min<int64_t>(mostCols, paddedAlong(shape.cols));
  blockRows = std::min<int64_t>(mostRows, numbers.wholeSteps(llvm::alignTo(shape.rows, 2)));
  rowBlocks = llvm::divideCeil(shape.rows, blockRows);
  colBlocks = llvm::divideCeil(shape.cols, blockCols);
  tileRows = numbers.wholeRows(blockRows);
  paddedRows = llvm::alignTo((rowBlocks - 1) * blockRows + tileRows, 2);
}

void BackwardPlan::takeParts(const Units &units) {
  int64_t wide = numbers.wide.getIntOrFloatBitWidth() / 8, step = numbers.stepBytes(),
          per = numbers.perStep();
  int64_t rows = shape.group * paddedRows, d = padded(shape.dim), dv_ = padded(shape.valueDim);
  q = take(rows, paddedAlong(shape.dim) / per, step);
  dout = take(rows, paddedAlong(shape.valueDim) / per, step);
  qAcross = isFma() ? q : take(rows / per, d, step);
  doutAcross = isFma() ? dout : take(rows / per, dv_, step);
  lse = take(rows, 1, wide);
  delta = take(rows, 1, wide);
  if (units.chunks > 1)
    dqShared = takeShared(units.chunks * shape.batch * shape.heads * paddedRows * d * wide);
  dq = units.chunks > 1 ? Part{0, d} : take(rows, d, wide);
  kT = take(transposedSteps(shape.dim), blockCols, step);
  vT = take(transposedSteps(shape.valueDim), blockCols, step);
  kAcross = take(blockCols / per, d, step);
  dk = take(blockCols, d, wide);
  dv = take(blockCols, dv_, wide);
  scores = take(tileRows, blockCols, wide);
  gradients = take(tileRows, blockCols, wide);
  gradientsAcross = isFma() ? gradients : take(tileRows, blockCols, step);
  if (numbers.arithmetic == Arithmetic::Tiles)
    transposed = take(blockCols, numbers.steps(blockRows), step);
}

/// Emits f · P and dS for one vector of scores, where f is the result of weight_mod.
std::pair<Value, Value> BackwardEmitter::emitVector(const Head &head, const RowContext &context,
                                                    Value group, Value firstRow, Value firstCol,
                                                    Value col, Value unit, bool masked) {
  int64_t lanes = plan.numbers.rowLanes;
  auto vector = VectorType::get({lanes}, plan.numbers.wide);
  double scale = op.getScale().convertToDouble();
  Value x = b.load(vector, b.at(matrix(plan.scores, plan.numbers.wide), context.row, col));
  Value dp = b.load(vector, b.at(matrix(plan.gradients, plan.numbers.wide), context.row, col));
  Value row = b.add(firstRow, context.row);
  Site site{head.batch, head.head, row, b.add(firstCol, col), {}, {}, lanes};
  Value keep, minus = arith::NegFOp::create(b, b.loc, context.lse), zero = b.number(0, lanes);
  if (masked) {
    site.q = b.min(row, b.constant(shape.rows - 1));
    site.lastColumn = b.constant(shape.cols - 1);
    keep = b.both(keptLanes(*mask, context.mask, site, col),
                  b.splat(b.isLess(row, b.constant(shape.rows)), lanes));
  }
  bool modifies = !score->function.empty();
  Value exponent;
  if (modifies) {
    x = b.mulf(x, b.number(scale, lanes));
    site.scores = {x};
    ScoreFunction::Values values = known(*score, context.score, col);
    Value s = splatted(score->function.emit(b, score->function.result(), site, values));
    exponent = b.addf(s, minus);
  } else {
    exponent = b.fma(x, b.number(scale, lanes), minus);
  }
  // The code multiplies by log2(e) only after the subtraction of lse. Otherwise the rounding error
  // of lse · log2(e) would affect a whole row.
  exponent = b.mulf(exponent, b.number(log2e, lanes));
  // Without rounding errors, `exponent` would be at most 0. If the scores are very large, rounding
  // errors can make `exponent` positive, and P is then wrong. The limit of 127 keeps P finite.
  Value most = b.number(127, lanes);
  exponent = b.select(arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::OGT, exponent, most),
                      most, exponent);
  Value p = b.exp2(exponent);
  if (masked)
    p = b.select(keep, p, zero);
  Value mixed = p;
  if (!weight->function.empty()) {
    ScoreFunction::Values values = known(*weight, context.weight, col);
    Value factor = splatted(weight->function.emit(b, weight->function.result(), site, values));
    if (masked)
      factor = b.select(keep, factor, zero);
    mixed = b.mulf(p, factor);
    dp = b.mulf(dp, factor);
  }
  Value ds = b.mulf(p, b.subf(dp, context.delta));
  if (modifies) {
    site.scores = {ds, x};
    ScoreFunction::Values values = known(*grad, context.grad, col);
    ds = splatted(grad->function.emit(b, grad->function.result(), site, values));
    captures.add(*this, *grad, site, values, keep, unit, group, row);
    if (masked)
      ds = b.select(keep, ds, zero);
  }
  return {mixed, ds};
}

/// Replaces the scores by f · P, and dP by dS, in the rows of the pass that begins at row `pass` of
/// the tile. Packs f · P and dS for the products that follow.
void BackwardEmitter::emitScores(const Head &head, Value group, Value firstRow, Value firstCol,
                                 Value pass, Value unit, bool masked) {
  Type wide = plan.numbers.wide, step = plan.numbers.stepType();
  int64_t lanes = plan.numbers.rowLanes, rowsPerTurn = plan.isFma() ? 1 : 2;
  Matrix p = matrix(plan.scores, step), ds = matrix(plan.gradients, step),
         dsAcross = matrix(plan.gradientsAcross, step);
  auto perRow = [&](const Part &part, Value row) {
    Value number = b.add(b.mul(group, plan.paddedRows), b.add(firstRow, row));
    return b.broadcastLoad(b.shift(scratch(part, wide), number), lanes);
  };
  b.loop(pass, b.add(pass, plan.passRows()), rowsPerTurn, [&](Value row) {
    SmallVector<RowContext> contexts;
    for (int64_t i = 0; i < rowsPerTurn; ++i) {
      Value at = b.add(row, i);
      contexts.push_back({at, perRow(plan.lse, at), perRow(plan.delta, at), knownOfRow(*score, at),
                          knownOfRow(*mask, at), knownOfRow(*weight, at), knownOfRow(*grad, at)});
    }
    b.loop(b.constant(0), b.constant(plan.blockCols), lanes, [&](Value col) {
      SmallVector<std::pair<Value, Value>> values;
      for (const RowContext &context : contexts)
        values.push_back(emitVector(head, context, group, firstRow, firstCol, col, unit, masked));
      auto second = [&](auto member) { return rowsPerTurn == 2 ? values.back().*member : Value(); };
      using Pair = std::pair<Value, Value>;
      b.storeAcross(values[0].first, second(&Pair::first), p, row, col);
      for (auto [i, value] : llvm::enumerate(values))
        b.storeAlong(value.second, ds, b.add(row, i), col);
      if (!plan.isFma())
        b.storeAcross(values[0].second, second(&Pair::second), dsAcross, row, col);
    });
    captures.endRow(*this);
  });
}

void BackwardEmitter::emitTile(const Head &head, Value group, Value rowBlock, Value firstCol,
                               Value isFree, Value unit) {
  Numbers numbers = plan.numbers;
  Type wide = numbers.wide, step = numbers.stepType();
  Value firstRow = b.mul(rowBlock, plan.blockRows);
  for (KeptFunction *f : {&*score, &*mask, &*weight, &*grad})
    emitRows(*f, head, firstRow, plan.blockRows);
  captures.beginTile(*this);
  Matrix scores = matrix(plan.scores, wide), gradients = matrix(plan.gradients, wide);
  b.loop(b.constant(0), b.constant(plan.blockRows), plan.passRows(), [&](Value pass) {
    Value row = b.add(firstRow, pass);
    auto product = [&](Matrix to, const Part &left, const Part &right, int64_t steps) {
      to.place = b.at(to, pass, b.constant(0));
      b.gemm(to, rowsOf(left, group, row, false), matrix(right, step), plan.passRows(),
             plan.blockCols, steps, CpuTiles::Sums::Zero);
    };
    product(scores, plan.q, plan.kT, plan.dimSteps());
    product(gradients, plan.dout, plan.vT, plan.valueSteps());
    auto change = [&](bool masked) {
      emitScores(head, group, firstRow, firstCol, pass, unit, masked);
    };
    if (hasMask())
      b.when(isFree, [&] { change(false); }, [&] { change(true); });
    else
      change(false);
  });
  auto accumulate = [&](const Matrix &to, const Matrix &left, const Matrix &right, int64_t rows,
                        int64_t cols, int64_t steps) {
    b.gemm(to, left, right, rows, cols, steps, CpuTiles::Sums::Kept);
  };
  int64_t rowSteps = numbers.steps(plan.blockRows);
  // The transpose of a tile that is packed across rows needs no copy: the code reads the columns of
  // the tile as rows. Only AMX tile registers cannot read a tile in this way.
  auto transposed = [&](const Part &part) {
    if (numbers.arithmetic != Arithmetic::Tiles)
      return Matrix{scratch(part, step), 1, part.stride};
    b.transposePairs(matrix(part, step), matrix(plan.transposed, step), plan.blockCols, rowSteps);
    return matrix(plan.transposed, step);
  };
  accumulate(matrix(plan.dv, wide), transposed(plan.scores),
             rowsOf(plan.doutAcross, group, firstRow, true), plan.blockCols, shape.valueDim,
             rowSteps);
  accumulate(matrix(plan.dk, wide), transposed(plan.gradientsAcross),
             rowsOf(plan.qAcross, group, firstRow, true), plan.blockCols, shape.dim, rowSteps);
  Matrix dq{b.at(dqHead, firstRow, b.constant(0)), dqHead.rowStride, 1};
  accumulate(dq, matrix(plan.gradients, step), matrix(plan.kAcross, step), plan.blockRows,
             shape.dim, numbers.steps(plan.blockCols));
  captures.endTile(*this, group);
}

/// Emits the code of one unit: a kv head and a chunk of its columns.
void BackwardEmitter::emitHead(Head head, Value unit, Value chunk) {
  Type wide = plan.numbers.wide;
  Value zero = b.constant(0);
  auto eachGroup = [&](function_ref<void(Head, Value)> body) {
    b.loop(zero, b.constant(shape.group), 1, [&](Value group) {
      Head own = head;
      own.head = b.add(b.mul(head.kvHead, shape.group), group);
      body(own, group);
    });
  };
  eachGroup([&](Head own, Value group) {
    packRows(own, group);
    captures.beginHead(*this, group);
    b.fillTile(dqOf(own, group, chunk), plan.paddedRows, plan.dq.stride, b.number(0));
  });
  Value from = b.div(b.mul(chunk, plan.colBlocks), units.chunks);
  Value to = b.div(b.mul(b.add(chunk, 1), plan.colBlocks), units.chunks);
  Matrix dk = matrix(plan.dk, wide), dv = matrix(plan.dv, wide);
  Heads dkOut = place(kernel, op.getDk()), dvOut = place(kernel, op.getDv());
  b.pipeline(from, to, nullptr, [&](Value block) {
    Value firstCol = b.mul(block, plan.blockCols);
    Value cols = b.min(b.constant(plan.blockCols), b.sub(b.constant(shape.cols), firstCol));
    Value isWhole = b.isEqual(cols, plan.blockCols);
    packBlock(head, block);
    b.fillTile(dk, plan.blockCols, plan.dk.stride, b.number(0));
    b.fillTile(dv, plan.blockCols, plan.dv.stride, b.number(0));
    eachGroup([&](Head own, Value group) {
      for (KeptFunction *f : {&*score, &*mask, &*weight, &*grad}) {
        emitUnit(*f, own);
        emitColumns(*f, own, firstCol);
      }
      captures.beginBlock(*this, own, group);
      dqHead = dqOf(own, group, chunk);
      forBlocks(ranges, plan.bounds, *mask, own, firstCol, b.add(firstCol, cols),
                [&](Value rowBlock, Value isFree) {
                  emitTile(own, group, rowBlock, firstCol, b.both(isFree, isWhole), unit);
                });
      captures.endBlock(*this, own, firstCol, cols);
    });
    if (dkOut.tensor.base)
      storeRows(dk, scaleVector(), headOf(dkOut, head.batch, head.kvHead), firstCol, cols,
                shape.dim);
    if (dvOut.tensor.base)
      storeRows(dv, Value(), headOf(dvOut, head.batch, head.kvHead), firstCol, cols,
                shape.valueDim);
  });
  Heads dqOut = place(kernel, op.getDq());
  eachGroup([&](Head own, Value group) {
    captures.endHead(*this, own, group, chunk);
    if (units.chunks == 1 && dqOut.tensor.base)
      storeRows(dqOf(own, group, chunk), scaleVector(), headOf(dqOut, own.batch, own.head), zero,
                b.constant(shape.rows), shape.dim);
  });
}

void BackwardEmitter::keepFunctions() {
  score.emplace(keep(op.getScoreMod(), 1, op.getCaptures()));
  mask.emplace(keep(op.getMaskMod(), 0, op.getCaptures()));
  weight.emplace(keep(op.getWeightMod(), 0, op.getCaptures()));
  grad.emplace(keep(op.getScoreGrad(), 2, op.getCaptures()));
}

void BackwardEmitter::emitMain(func::FuncOp phase) {
  enter(kernel, phase);
  keepFunctions();
  b.loop(begin, end, 1, [&](Value unit) {
    captures.beginUnit(*this, unit);
    Value chunk = b.rem(unit, units.chunks), rest = b.div(unit, units.chunks);
    Value head = units.ownsHead ? b.rem(rest, shape.kvHeads) : Value();
    Value batch = units.ownsBatch ? (units.ownsHead ? b.div(rest, shape.kvHeads) : rest) : Value();
    auto each = [&](Value own, int64_t count, function_ref<void(Value)> body) {
      own ? body(own) : b.loop(b.constant(0), b.constant(count), 1, body);
    };
    each(batch, shape.batch, [&](Value batch) {
      each(head, shape.kvHeads, [&](Value head) { emitHead({batch, Value(), head}, unit, chunk); });
    });
  });
}

void BackwardEmitter::emitClear(func::FuncOp phase) {
  enter(kernel, phase);
  captures.emitClear(*this);
}

void BackwardEmitter::emitFinish(func::FuncOp phase) {
  enter(kernel, phase);
  grad.emplace(keep(op.getScoreGrad(), 2, op.getCaptures()));
  captures.emitFinish(*this, *grad, units);
}

/// Adds the dQ of all chunks of each head.
void BackwardEmitter::emitSum(func::FuncOp phase) {
  enter(kernel, phase);
  Heads out = place(kernel, op.getDq());
  if (!out.tensor.base)
    return;
  int64_t lanes = plan.numbers.rowLanes;
  auto vector = VectorType::get({lanes}, plan.numbers.wide);
  Value zero = b.constant(0);
  b.loop(begin, end, 1, [&](Value number) {
    Head head{b.div(number, shape.heads), b.rem(number, shape.heads), Value()};
    Matrix sum = dqOf(head, zero, zero);
    b.loop(b.constant(1), b.constant(units.chunks), 1, [&](Value chunk) {
      Matrix other = dqOf(head, zero, chunk);
      b.loop(zero, b.constant(shape.rows * plan.dq.stride), lanes, [&](Value i) {
        Pointer to = b.shift(sum.place, i);
        b.store(b.addf(b.load(vector, to), b.load(vector, b.shift(other.place, i))), to);
      });
    });
    storeRows(sum, scaleVector(), headOf(out, head.batch, head.head), zero, b.constant(shape.rows),
              shape.dim);
  });
}

LogicalResult attention::lowerBackward(func::FuncOp kernel, AttentionGradOp op,
                                       const CpuTarget &target, KernelInfo &info) {
  Numbers numbers(cast<RankedTensorType>(op.getQ().getType()).getElementType(), target);
  BackwardPlan plan(getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType()),
                    numbers);
  Captures captures(op, kernel, plan.shape);
  Units units = captures.chooseUnits(plan.colBlocks);
  plan.takeParts(units);
  captures.takeParts(plan, units, plan.paddedRows);
  CpuTiles b(op.getLoc(), op.getContext(), numbers);
  BackwardEmitter emitter(b, plan, op, kernel, captures, units);
  auto phase = [&](int64_t extent, void (BackwardEmitter::*emit)(func::FuncOp)) {
    std::string symbol =
        info.phases.empty() ? info.name : info.name + "." + std::to_string(info.phases.size());
    (emitter.*emit)(createPhase(b, kernel, symbol, extent, 1, plan.sharedBytes > 0));
    info.phases.push_back({symbol, extent, 1});
  };
  int64_t gradients = op.getDcaptures().size();
  if (captures.hasShared())
    phase(gradients, &BackwardEmitter::emitClear);
  phase(units.count(plan.shape), &BackwardEmitter::emitMain);
  if (units.chunks > 1)
    phase(plan.shape.batch * plan.shape.heads, &BackwardEmitter::emitSum);
  if (!captures.empty())
    phase(gradients, &BackwardEmitter::emitFinish);
  info.sharedBytes = std::max(info.sharedBytes, plan.sharedBytes);
  info.workerBytes = std::max(info.workerBytes, plan.workerBytes);
  kernel.erase();
  return success();
}
