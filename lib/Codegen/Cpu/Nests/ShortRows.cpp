//===- ShortRows.cpp - Rows of 2, 4 or 8, many at a time --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A short row has fewer elements than a vector has lanes. Therefore the lanes of a vector hold
// elements of different rows:
//
//   for 16 rows: c0 .. c7 = columns of x            8 loads, shuffles
//     s = (c0 + c4 + (c2 + c6)) + ..                the tree of RowNests.cpp, in each lane
//     y0 .. y7 = c0 / s ..                          shuffled back, 8 stores
//
// A row of n elements has n virtual lanes with one element each. Therefore a sum is computed in the
// same order as in RowNests.cpp and has the same bits. Values that one step passes to another stay
// in registers. Results are stored after all values have been computed.
//
// Rows are computed in this way only if code that is emitted on trial contains no gathers.
//
//===----------------------------------------------------------------------===//

#include "NestBuilder.h"

using namespace mlir;
using namespace mlir::fsdp;

void NestBuilder::emitShortRows(Phase &phase, ArrayRef<Step> segment, ArrayRef<int64_t> rows,
                                Evaluator &at, AffineExpr row) {
  AffineExpr zero = at.constant(0);
  SmallVector<AffineExpr> rowIndices = fsdp::delinearise(at.subscripts(), row, rows);
  for (AffineExpr &expr : rowIndices)
    expr = at.subscripts().simplify(expr);
  // For the check of in-place updates (AccessLog.h), reads have stage 0 and stores have stage 1.
  log.stage = 0;
  log.watchRow(phase.state, segment, rowIndices);
  std::vector<std::pair<const Step *, Values>> results;
  for (const Step &step : segment) {
    SmallVector<int64_t> shape = *getColumnShape(step, rows);
    Type element = step.getType().getElementType();
    Values columns;
    for (int64_t i = 0, e = ShapedType::getNumElements(shape); i < e; ++i) {
      SmallVector<AffineExpr> column = fsdp::delinearise(at.subscripts(), at.constant(i), shape);
      if (step.isReduction())
        columns.push_back(
            at.advance(step.op, step.result,
                       constantVector(getIdentity(step.combiner, element), at.getLanes()),
                       loopIndices(step, rowIndices, column, zero)));
      else
        columns.push_back(
            at.broadcast(at.evaluate(step.value, valueIndices(step, rowIndices, column, zero))));
    }
    if (step.isReduction()) {
      // Combines the second half of the columns with the first half, until one column is left.
      while (columns.size() > 1) {
        size_t half = columns.size() / 2;
        for (size_t i = 0; i < half; ++i)
          columns[i] = combine(builder, loc, step.combiner, columns[i], columns[i + half]);
        columns.resize(half);
      }
      Value init = at.evaluate(linalg::GenericOp(step.op).getDpsInits()[step.result],
                               valueIndices(step, rowIndices, {}, zero));
      columns[0] = combine(builder, loc, step.combiner, at.broadcast(init), columns[0]);
      phase.state.rowValues[step.value] = columns[0];
    }
    results.push_back({&step, columns});
  }
  phase.state.rowValues.clear();
  log.stage = 1;
  AffineExpr start = at.subscripts().simplify(row - at.lane());
  for (auto &[step, columns] : results) {
    SmallVector<Value> targets = getTargets(phase, *step);
    if (targets.empty())
      continue;
    log.store(*step, rowIndices);
    int64_t count = columns.size();
    if (at.getLanes() > 1)
      interleave(builder, loc, columns);
    for (auto [i, value] : llvm::enumerate(columns))
      storeAll(at, targets, value, start * count + at.lane() + int64_t(i) * at.getLanes());
  }
  phase.state.onRead = nullptr;
}

bool NestBuilder::buildShortRows(ArrayRef<Step> segment, ArrayRef<int64_t> rows) {
  int64_t count = ShapedType::getNumElements(rows), lanes = target.vectorBits / 32;
  if (count < flatTile)
    return false;
  bool any = false;
  for (const Step &step : segment) {
    std::optional<SmallVector<int64_t>> shape = getColumnShape(step, rows);
    if (!shape || step.kind == StepKind::ColumnReduction)
      return false;
    int64_t columns = ShapedType::getNumElements(*shape);
    // A reduction over several loops is refused, because RowNests.cpp uses virtual lanes only for
    // the innermost loop.
    if (columns > 8 || !llvm::isPowerOf2_64(columns) || (step.isReduction() && shape->size() != 1))
      return false;
    any |= columns > 1;
  }
  if (!any)
    return false;
  Phase phase = begin(count, flatTile);
  Evaluator at(builder, loc, phase.state, 1);
  Trial trial = attempt(phase, [&] {
    Evaluator piece = at.withLanes(lanes);
    AffineExpr position = piece.addDim(index(0), 0, count / lanes - 1) * lanes + piece.lane();
    emitShortRows(phase, segment, rows, piece, position);
  });
  if (trial.gathers) {
    eraseWithGlobals(phase.function);
    return false;
  }
  emitRange(
      phase, count, at,
      [&](Evaluator &piece, AffineExpr position) {
        ++log.body;
        emitShortRows(phase, segment, rows, piece, position);
      },
      lanes);
  return commit(phase, segment);
}
