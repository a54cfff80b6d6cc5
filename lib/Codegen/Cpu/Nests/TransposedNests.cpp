//===- TransposedNests.cpp - Maps that transpose square blocks --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers maps whose inputs and results are contiguous in memory along different dimensions. If a
// vector were a part of the results' contiguous dimension, each load would be a gather. If a vector
// were a part of the inputs' contiguous dimension, each store would be a scatter. Instead, blocks
// of 16 x 16 elements are transposed in registers:
//
//   for column in 0..15: v[column] = y[row0 + lane, column]     16 plain loads
//   4 rounds of interleaving v[i] with v[i + 8]                 64 shuffles
//   for row in 0..15: store v[row] at y[row0 + row, lane]       16 plain stores
//
// (This works because the number of an element in the block, 16 · row + column, has eight bits. A
// round of interleaving rotates the number by one bit: the highest bit becomes the lowest bit. Four
// rounds therefore exchange row and column.)
//
//  1. For each dimension, emit the maps on trial with lanes along this dimension. Choose the
//     dimension for which the code has the fewest gathers. Refuse the maps if the code for the last
//     dimension does not have more gathers than the code for the chosen dimension.
//  2. A unit of work is a block of rows with all columns. Rows or columns that do not fill a block
//     are computed with lanes along the dimension in which results are contiguous.
//
// Maps whose inputs differ from each other in the contiguous dimension are not supported.
//
//===----------------------------------------------------------------------===//

#include "NestBuilder.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t side = 16;

/// Emits the block that begins at index `row` of dimension `across` and at column `column`.
void NestBuilder::emitSquare(Phase &phase, ArrayRef<Step> segment, Evaluator &at,
                             SmallVector<AffineExpr> indices, unsigned across, AffineExpr row,
                             AffineExpr column) {
  ++log.body;
  Evaluator piece = at.withLanes(side);
  SmallVector<SmallVector<Value>> blocks(segment.size());
  for (int64_t i = 0; i < side; ++i) {
    indices[across] = row + piece.lane();
    indices.back() = column + i;
    for (auto [step, block] : llvm::zip_equal(segment, blocks))
      block.push_back(piece.broadcast(piece.evaluate(step.value, indices)));
  }
  for (auto [step, block] : llvm::zip_equal(segment, blocks)) {
    // If there are as many vectors as lanes, interleave() transposes the block.
    interleave(builder, loc, block);
    for (int64_t i = 0; i < side; ++i) {
      indices[across] = row + i;
      indices.back() = column + piece.lane();
      emitStore(phase, step, piece, indices, block[i]);
    }
  }
}

/// Emits the loop over units. A unit is a block of rows along `across`, at one position of the
/// other dimensions.
void NestBuilder::emitUnits(Phase &phase, ArrayRef<Step> segment, unsigned across) {
  ArrayRef<int64_t> shape = segment.front().getType().getShape();
  SmallVector<int64_t> units(shape.drop_back());
  int64_t columns = shape.back(), wholeColumns = columns / side, wholeRows = shape[across] / side;
  units[across] = llvm::divideCeil(shape[across], side);
  auto loop = scf::ForOp::create(builder, loc, phase.begin, phase.end, index(1));
  builder.setInsertionPointToStart(loop.getBody());
  Evaluator at(builder, loc, phase.state, 1);
  AffineExpr unit = at.addDim(loop.getInductionVar(), 0, phase.extent - 1);
  SmallVector<AffineExpr> indices = fsdp::delinearise(at.subscripts(), unit, units);
  Value block = at.materialise(indices[across]);
  indices.push_back(at.constant(0));
  SmallVector<const Step *> members;
  for (const Step &step : segment)
    members.push_back(&step);
  Values none;
  // Emits the code for rows [first, first + count) and for all columns that begin at `column`, with
  // lanes along columns.
  auto emitAlong = [&](Evaluator &outer, AffineExpr first, int64_t count, int64_t column) {
    auto rows = scf::ForOp::create(builder, loc, index(0), index(count), index(1));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(rows.getBody());
    Evaluator inner(outer);
    indices[across] = first + inner.addDim(rows.getInductionVar(), 0, count - 1);
    emitPieces(column, columns, inner, [&](Evaluator &piece, AffineExpr position) {
      indices.back() = position;
      emitBody(phase, members, {}, indices, piece, 0, none, 1);
    });
  };
  auto emitWhole = [&] {
    Evaluator inner(at);
    AffineExpr row = inner.addDim(block, 0, wholeRows - 1) * side;
    auto squares = scf::ForOp::create(builder, loc, index(0), index(wholeColumns), index(1));
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(squares.getBody());
      Evaluator square(inner);
      AffineExpr column = square.addDim(squares.getInductionVar(), 0, wholeColumns - 1) * side;
      emitSquare(phase, segment, square, indices, across, row, column);
    }
    if (columns % side)
      emitAlong(inner, row, side, wholeColumns * side);
  };
  if (shape[across] % side == 0)
    return emitWhole();
  Value isWhole =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, block, index(wholeRows));
  auto branch = scf::IfOp::create(builder, loc, isWhole, /*withElseRegion=*/true);
  builder.setInsertionPointToStart(branch.thenBlock());
  emitWhole();
  builder.setInsertionPointToStart(branch.elseBlock());
  Evaluator rest(at);
  emitAlong(rest, rest.constant(wholeRows * side), shape[across] % side, 0);
}

bool NestBuilder::buildTransposed(ArrayRef<Step> segment) {
  ArrayRef<int64_t> shape = segment.front().getType().getShape();
  if (shape.size() < 2 || shape.back() < side)
    return false;
  for (const Step &step : segment) {
    Type element = step.getType().getElementType();
    if (step.getType().getShape() != shape || element.isIndex() || element.isInteger(1))
      return false;
    for (const Step &other : segment)
      if (&other != &step && readsValue(step, other.value, steps))
        return false;
  }
  int64_t units = 1;
  for (int64_t size : shape.drop_back())
    units *= size;
  Phase phase = begin(1, 1);
  auto gathersAlong = [&](unsigned dimension) {
    return attempt(phase,
                   [&] {
                     Evaluator at(builder, loc, phase.state, side);
                     SmallVector<AffineExpr> indices;
                     for (int64_t size : shape)
                       indices.push_back(at.addDim(index(0), 0, size - 1));
                     indices[dimension] =
                         at.addDim(index(0), 0, std::max<int64_t>(shape[dimension] / side - 1, 0)) *
                             side +
                         at.lane();
                     for (const Step &step : segment)
                       (void)at.evaluate(step.value, indices);
                   })
        .gathers;
  };
  unsigned last = shape.size() - 1, best = last;
  int64_t least = units > 0 ? gathersAlong(last) : 0;
  for (unsigned i = 0; i < last && least > 0; ++i)
    if (int64_t gathers = shape[i] >= side ? gathersAlong(i) : least; gathers < least) {
      least = gathers;
      best = i;
    }
  eraseWithGlobals(phase.function);
  if (best == last)
    return false;
  phase = begin(units / shape[best] * llvm::divideCeil(shape[best], side), 1);
  log.watch(phase.state);
  emitUnits(phase, segment, best);
  phase.state.onRead = nullptr;
  return commit(phase, segment);
}
