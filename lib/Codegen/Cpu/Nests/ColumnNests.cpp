//===- ColumnNests.cpp - Sums over rows, and scatters -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For a sum over rows, the lanes of a vector are adjacent columns. Each column is then summed in
// the order of its rows. If there are many rows, they are divided into at most 16 blocks. The
// number of blocks depends only on the number of rows:
//
//   phase 1   for block: for k: for row in block: a[64 k + lane] += x[row, ..]
//   phase 2   for k: y[64 k + lane] = init + (a of block 0 + block 1 + ...)
//
// While a block of rows is summed, the sums of a vector of columns stay in registers.
//
// In a scatter, each worker owns a range of columns and visits all tokens in order for this range.
// No atomics are needed, and the sums do not depend on which worker has which range.
//
//===----------------------------------------------------------------------===//

#include "NestBuilder.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t maxBlocks = 16, minBlockRows = 32;

/// Calls `body` for vectors that together cover the constant positions [begin, end). The sizes of
/// the vectors are powers of two.
void NestBuilder::emitPieces(int64_t begin, int64_t end, Evaluator &at,
                             function_ref<void(Evaluator &, AffineExpr)> body) {
  while (begin < end) {
    int64_t lanes =
        std::min<int64_t>(llvm::bit_floor(uint64_t(end - begin)), vectorLanes(virtualLanes));
    Evaluator piece = at.withLanes(lanes);
    body(piece, piece.constant(begin) + piece.lane());
    begin += lanes;
  }
}

/// Emits `body` for the positions of the phase's range, which begins at a multiple of the tile. A
/// loop processes the positions of whole vectors. The worker whose range ends at `size` also
/// processes the positions after the last whole vector.
void NestBuilder::emitRange(Phase &phase, int64_t size, Evaluator &at,
                            function_ref<void(Evaluator &, AffineExpr)> body, int64_t lanes) {
  lanes = lanes ? lanes : vectorLanes(virtualLanes);
  int64_t whole = size / lanes, split = whole * lanes;
  OpBuilder::InsertionGuard guard(builder);
  if (whole > 0) {
    Value first = arith::DivUIOp::create(builder, loc, phase.begin, index(lanes));
    Value last = arith::MinUIOp::create(builder, loc, phase.end, index(split));
    last = arith::DivUIOp::create(builder, loc, last, index(lanes));
    auto loop = scf::ForOp::create(builder, loc, first, last, index(1));
    OpBuilder::InsertionGuard inLoop(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Evaluator inner = at.withLanes(lanes);
    AffineExpr dim = inner.addDim(loop.getInductionVar(), 0, whole - 1);
    body(inner, dim * lanes + inner.lane());
  }
  if (split == size)
    return;
  Value reaches =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, phase.end, index(size));
  auto branch = scf::IfOp::create(builder, loc, reaches, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(branch.thenBlock());
  Evaluator inner(at);
  emitPieces(split, size, inner, body);
}

namespace {
/// Loops of a column reduction: columns (parallel) and rows (reduced).
struct ColumnLoops {
  SmallVector<int64_t> columns, rows;
  int64_t outer, inner, count;

  explicit ColumnLoops(const Step &step)
      : columns(step.getType().getShape()), rows(getReducedShape(step)) {
    inner = columns.back();
    outer = ShapedType::getNumElements(columns) / std::max<int64_t>(inner, 1);
    count = ShapedType::getNumElements(rows);
  }

  SmallVector<AffineExpr> position(const Step &step, Subscripts subscripts,
                                   ArrayRef<AffineExpr> column, AffineExpr row) const {
    return loopIndices(step, column, delinearise(subscripts, row, rows), /*zero=*/{});
  }
};
} // namespace

/// The reductions of one segment, which all reduce over the same rows. If there are many rows, a
/// first phase reduces each block of rows, and a second phase combines the results of the blocks.
struct NestBuilder::ColumnReduction {
  ArrayRef<Step> segment;
  ColumnLoops loops;
  int64_t blocks, blockRows;
  /// For each step, the offset at which the shared scratch contains the sums of the blocks.
  SmallVector<int64_t> partials = {};

  explicit ColumnReduction(ArrayRef<Step> segment) : segment(segment), loops(segment.front()) {
    blocks = std::clamp<int64_t>(loops.count / minBlockRows, 1, maxBlocks);
    blockRows = llvm::divideCeil(loops.count, blocks);
    blocks = llvm::divideCeil(loops.count, std::max<int64_t>(blockRows, 1));
  }

  ArrayRef<int64_t> getOuterShape() const { return ArrayRef(loops.columns).drop_back(); }
  int64_t countColumns() const { return ShapedType::getNumElements(loops.columns); }
  /// Returns true if all steps have the same shape and there is at least one row and one column.
  bool isRegular() const {
    return loops.count > 0 && countColumns() > 0 && llvm::all_of(segment, [&](const Step &step) {
             return step.op && step.getType().getRank() > 0 &&
                    step.getType().getShape() == segment.front().getType().getShape();
           });
  }
};

static SmallVector<AffineExpr> getColumn(ArrayRef<AffineExpr> outer, AffineExpr position) {
  SmallVector<AffineExpr> column(outer);
  column.push_back(position);
  return column;
}

/// Emits the reductions of rows [first, last) for one vector of columns.
SmallVector<Value> NestBuilder::sumRows(const ColumnReduction &reduction, Evaluator &at,
                                        ArrayRef<AffineExpr> column, Value first, Value last) {
  Values carried;
  for (const Step &step : reduction.segment)
    carried.push_back(
        constantVector(getIdentity(step.combiner, step.getType().getElementType()), at.getLanes()));
  auto loop = scf::ForOp::create(builder, loc, first, last, index(1), carried);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(loop.getBody());
  Evaluator inner(at);
  AffineExpr row = inner.addDim(loop.getInductionVar(), 0, reduction.loops.count - 1);
  Values sums;
  for (auto [step, sum] : llvm::zip_equal(reduction.segment, loop.getRegionIterArgs()))
    sums.push_back(inner.advance(step.op, step.result, sum,
                                 reduction.loops.position(step, inner.subscripts(), column, row)));
  scf::YieldOp::create(builder, loc, sums);
  return Values(loop.getResults());
}

/// Builds the phase that reduces each block of rows into the shared scratch.
bool NestBuilder::buildBlockSums(ColumnReduction &reduction) {
  const ColumnLoops &loops = reduction.loops;
  int64_t blocks = reduction.blocks, columns = reduction.countColumns();
  for (const Step &step : reduction.segment) {
    reduction.partials.push_back(reserve(blocks * getStorageBytes(step.getType())));
  }
  Phase phase = begin(loops.outer * blocks, 1);
  log.watch(phase.state);
  auto work = scf::ForOp::create(builder, loc, phase.begin, phase.end, index(1));
  builder.setInsertionPointToStart(work.getBody());
  Evaluator at(builder, loc, phase.state, 1);
  AffineExpr item = at.addDim(work.getInductionVar(), 0, loops.outer * blocks - 1);
  AffineExpr block = at.subscripts().mod(item, blocks);
  SmallVector<AffineExpr> outer = delinearise(
      at.subscripts(), at.subscripts().floorDiv(item, blocks), reduction.getOuterShape());
  Value first = at.materialise(block * reduction.blockRows);
  Value last = arith::AddIOp::create(builder, loc, first, index(reduction.blockRows));
  last = arith::MinUIOp::create(builder, loc, last, index(loops.count));
  emitColumns(loops.inner, at, [&](Evaluator &piece, AffineExpr position) {
    SmallVector<AffineExpr> column = getColumn(outer, position);
    Values sums = sumRows(reduction, piece, column, first, last);
    AffineExpr offset =
        fsdp::linearise(piece.subscripts(), column, loops.columns, builder.getContext());
    for (auto [step, sum, start] : llvm::zip_equal(reduction.segment, sums, reduction.partials)) {
      Type element = step.getType().getElementType();
      Value memory = view(phase.shared, start, blocks * columns, element);
      piece.store(sum, memory, offset + block * columns);
    }
  });
  return commit(phase, {});
}

/// Emits the code for one vector of columns that adds the sums of the blocks to the initial value,
/// in the order of the blocks.
void NestBuilder::finishColumns(const ColumnReduction &reduction, Phase &phase, Evaluator &piece,
                                SmallVector<AffineExpr> column) {
  ++log.body;
  int64_t blocks = reduction.blocks, columns = reduction.countColumns();
  for (AffineExpr &expr : column)
    expr = piece.subscripts().simplify(expr);
  AffineExpr offset =
      fsdp::linearise(piece.subscripts(), column, reduction.loops.columns, builder.getContext());
  Values sums;
  if (blocks == 1)
    sums = sumRows(reduction, piece, column, index(0), index(reduction.loops.count));
  Values totals;
  for (auto [i, step] : llvm::enumerate(reduction.segment)) {
    Type element = step.getType().getElementType();
    if (blocks > 1) {
      Value memory = view(phase.shared, reduction.partials[i], blocks * columns, element);
      Value sum;
      for (int64_t block = 0; block < blocks; ++block) {
        Value part = piece.load(memory, element, offset + block * columns);
        sum = sum ? combine(builder, loc, step.combiner, sum, part) : part;
      }
      sums.push_back(sum);
    }
    Value init = piece.broadcast(
        piece.evaluate(linalg::GenericOp(step.op).getDpsInits()[step.result], column));
    totals.push_back(combine(builder, loc, step.combiner, init, sums[i]));
  }
  for (auto [step, total] : llvm::zip_equal(reduction.segment, totals)) {
    log.store(step, column);
    storeAll(piece, getTargets(phase, step), total, offset);
  }
}

bool NestBuilder::buildColumns(ArrayRef<Step> segment) {
  if (!segment.front().op || segment.front().getType().getRank() == 0)
    return false;
  ColumnReduction reduction(segment);
  if (!reduction.isRegular() || (reduction.blocks > 1 && !buildBlockSums(reduction)))
    return false;
  const ColumnLoops &loops = reduction.loops;
  bool flat = loops.outer == 1;
  Phase phase = begin(flat ? loops.inner : loops.outer, flat ? flatTile : 1);
  log.watch(phase.state);
  Evaluator at(builder, loc, phase.state, 1);
  if (flat) {
    SmallVector<AffineExpr> outer(reduction.getOuterShape().size(), at.constant(0));
    emitRange(phase, loops.inner, at, [&](Evaluator &piece, AffineExpr position) {
      finishColumns(reduction, phase, piece, getColumn(outer, position));
    });
  } else {
    auto work = scf::ForOp::create(builder, loc, phase.begin, phase.end, index(1));
    builder.setInsertionPointToStart(work.getBody());
    AffineExpr item = at.addDim(work.getInductionVar(), 0, loops.outer - 1);
    SmallVector<AffineExpr> outer = delinearise(at.subscripts(), item, reduction.getOuterShape());
    emitColumns(loops.inner, at, [&](Evaluator &piece, AffineExpr position) {
      finishColumns(reduction, phase, piece, getColumn(outer, position));
    });
  }
  return commit(phase, segment);
}

/// Emits `body` for all columns of a row: a loop over whole vectors, then the remaining columns.
void NestBuilder::emitColumns(int64_t size, Evaluator &at,
                              function_ref<void(Evaluator &, AffineExpr)> body) {
  int64_t lanes = vectorLanes(virtualLanes), whole = size / lanes;
  if (whole > 0) {
    auto loop = scf::ForOp::create(builder, loc, index(0), index(whole), index(1));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Evaluator inner = at.withLanes(lanes);
    AffineExpr dim = inner.addDim(loop.getInductionVar(), 0, whole - 1);
    body(inner, dim * lanes + inner.lane());
  }
  emitPieces(whole * lanes, size, at, body);
}

bool NestBuilder::buildScatter(const Step &step) {
  auto op = cast<ScatterAddRowsOp>(step.value.getDefiningOp());
  RankedTensorType type = step.getType();
  auto ids = cast<RankedTensorType>(op.getIds().getType());
  int64_t columns = type.getDimSize(1), tokens = ids.getNumElements();
  if (type.getNumElements() == 0 || tokens == 0)
    return false;

  // A first phase stores the initial value to the buffer of the sums, unless the value is there.
  bool inPlace =
      op.getInit() && step.destinations.size() == 1 && op.getInit() == step.destinations.front();
  if (!inPlace) {
    Phase phase = begin(type.getNumElements(), flatTile);
    log.watch(phase.state);
    Evaluator at(builder, loc, phase.state, 1);
    emitRange(phase, type.getNumElements(), at, [&](Evaluator &piece, AffineExpr position) {
      ++log.body;
      SmallVector<AffineExpr> indices = delinearise(piece.subscripts(), position, type.getShape());
      Value value = constantVector(builder.getZeroAttr(type.getElementType()), piece.getLanes());
      if (op.getInit())
        value = piece.broadcast(piece.evaluate(op.getInit(), indices));
      log.store(step, indices);
      storeAll(piece, getTargets(phase, step), value, position);
    });
    if (!commit(phase, {}))
      return false;
  }

  Phase phase = begin(columns, flatTile);
  log.watch(phase.state);
  Evaluator at(builder, loc, phase.state, 1);
  SmallVector<Value> targets = getTargets(phase, step);
  emitRange(phase, columns, at, [&](Evaluator &piece, AffineExpr position) {
    auto loop = scf::ForOp::create(builder, loc, index(0), index(tokens), index(1));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Evaluator inner(piece);
    AffineExpr token = inner.addDim(loop.getInductionVar(), 0, tokens - 1);
    SmallVector<AffineExpr> indices = delinearise(inner.subscripts(), token, ids.getShape());
    Value id = inner.evaluate(op.getIds(), indices);
    indices.push_back(position);
    Value update = inner.broadcast(inner.evaluate(op.getUpdates(), indices));
    if (isa<VectorType>(id.getType())) {
      phase.state.refusal = "ids that differ between columns";
      return;
    }
    Value row = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), id);
    AffineExpr offset = inner.addDim(row, 0, type.getDimSize(0) - 1) * columns + position;
    for (Value target : targets) {
      Value old = inner.load(target, type.getElementType(), offset);
      inner.store(arith::AddFOp::create(builder, loc, inner.broadcast(old), update), target,
                  offset);
    }
  });
  log.store(step, {});
  return commit(phase, step);
}
