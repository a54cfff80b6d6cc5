//===- RowNests.cpp - Rows and flat maps as vector loops --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   for row in [begin, end)
//     a0 = zeros; for k: a0 += x[row, 64 k + lane]            group 1: reductions
//     s = tree(a0)                                            a scalar of the row
//     for k: y[row, 64 k + lane] = x[row, ..] - s / n         group 2: maps
//
// Steps that run over the same columns and do not read one another form a group. All steps of a
// group are computed in one pass over the row. On every CPU, a reduction uses 64 virtual lanes. If
// a row is shorter, their number is the row length rounded up to a power of two. Lane l adds
// elements l, l + 64, ... of the inner loop. Then lane l + 32 is added to lane l, then lane l + 16
// to lane l, and so on. The last addition adds the result to the initial value. If the row length
// is not a multiple of 64, the last elements form vectors whose sizes are powers of two. Each of
// these vectors is added to the first lanes.
//
// If consecutive columns are consecutive in memory, one flat loop runs over all dimensions of the
// columns. Otherwise the loop over the innermost dimension is vectorised.
//
//===----------------------------------------------------------------------===//

#include "NestBuilder.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Stores `value` as the element at `indices` of the value of `step`. The element is in the row
/// buffer of the step if there is one, otherwise in the memory that getTargets() returns.
void NestBuilder::emitStore(Phase &phase, const Step &step, Evaluator &at,
                            SmallVector<AffineExpr> indices, Value value) {
  Subscripts subscripts = at.subscripts();
  for (AffineExpr &expr : indices)
    expr = subscripts.simplify(expr);
  log.store(step, indices);
  ArrayRef<int64_t> shape = step.getType().getShape();
  if (Value buffer = rowBuffers.lookup(step.value)) {
    unsigned skip = rowBufferSkip;
    at.store(value, buffer,
             fsdp::linearise(subscripts, ArrayRef(indices).drop_front(skip), shape.drop_front(skip),
                             builder.getContext()));
    return;
  }
  storeAll(at, getTargets(phase, step), value,
           fsdp::linearise(subscripts, indices, shape, builder.getContext()));
}

/// Evaluates all steps of a group (`members`) for one vector of columns. Reductions update
/// `carried`, which contains `pieces` vectors for each reduction. The results of maps are stored
/// after all members have been evaluated.
void NestBuilder::emitBody(Phase &phase, ArrayRef<const Step *> members,
                           ArrayRef<AffineExpr> rowIndices, ArrayRef<AffineExpr> columnIndices,
                           Evaluator &at, int64_t first, Values &carried, int64_t pieces) {
  ++log.body;
  AffineExpr zero = at.constant(0);
  SmallVector<std::pair<const Step *, Value>> stores;
  unsigned reduction = 0;
  for (const Step *step : members) {
    if (!step->isReduction()) {
      stores.push_back(
          {step, at.evaluate(step->value, valueIndices(*step, rowIndices, columnIndices, zero))});
      continue;
    }
    SmallVector<AffineExpr> loops = loopIndices(*step, rowIndices, columnIndices, zero);
    Value &head = carried[reduction++ * pieces];
    auto type = dyn_cast<VectorType>(head.getType());
    int64_t width = type ? type.getDimSize(0) : 1, offset = first % width, lanes = at.getLanes();
    Value &sum = (&head)[first / width];
    if (lanes == width) {
      sum = at.advance(step->op, step->result, sum, loops);
    } else if (lanes == 1) {
      Value part = vector::ExtractOp::create(builder, loc, sum, offset);
      part = at.advance(step->op, step->result, part, loops);
      sum = vector::InsertOp::create(builder, loc, part, sum, offset);
    } else {
      Value part =
          vector::ExtractStridedSliceOp::create(builder, loc, sum, ArrayRef<int64_t>{offset},
                                                ArrayRef<int64_t>{lanes}, ArrayRef<int64_t>{1});
      part = at.advance(step->op, step->result, part, loops);
      sum = vector::InsertStridedSliceOp::create(builder, loc, part, sum, ArrayRef<int64_t>{offset},
                                                 ArrayRef<int64_t>{1});
    }
  }
  for (auto [step, value] : stores)
    emitStore(phase, *step, at, valueIndices(*step, rowIndices, columnIndices, zero), value);
}

/// Emits code on trial and erases the code again. Returns how many gathers the code contains, and
/// at which positions loops should be split for this code.
NestBuilder::Trial NestBuilder::attempt(Phase &phase, function_ref<void()> emit) {
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&phase.function.getBody(), phase.function.getBody().end());
  EvaluationState saved = phase.state;
  AccessLog savedLog = log;
  phase.state.gathers = 0;
  phase.state.splits.clear();
  phase.state.onRead = nullptr;
  emit();
  Trial trial{phase.state.gathers, phase.state.splits};
  // Keep the tables of constants that the trial created, because erasing the code does not erase
  // the globals of the tables.
  auto tables = phase.state.stored;
  phase.state = saved;
  for (auto [value, place] : tables)
    if (value.getDefiningOp<arith::ConstantOp>())
      phase.state.stored[value] = place;
  log = savedLog;
  block->erase();
  return trial;
}

/// Chooses between a flat loop and nested loops, and chooses the positions at which the inner loop
/// is split. To compare the choices, emits the loop body on trial for each of them.
NestBuilder::Columns NestBuilder::chooseColumns(Phase &phase, ArrayRef<const Step *> members,
                                                ArrayRef<AffineExpr> rowIndices,
                                                ArrayRef<int64_t> shape, Evaluator &at) {
  auto emitOnce = [&](bool flat, const Columns &columns) {
    int64_t lanes = std::min<int64_t>(virtualLanes, llvm::bit_floor(uint64_t(columns.inner)));
    Evaluator inner = at.withLanes(lanes);
    SmallVector<AffineExpr> indices;
    Value any = index(0);
    for (int64_t size : columns.outer)
      indices.push_back(inner.addDim(any, 0, size - 1));
    AffineExpr position =
        inner.addDim(any, 0, std::max<int64_t>(columns.inner / lanes - 1, 0)) * lanes +
        inner.lane();
    inner.setColumn(inner.subscripts().simplify(position));
    if (flat)
      indices = fsdp::delinearise(inner.subscripts(), position, shape);
    else
      indices.push_back(position);
    Values carried;
    for (const Step *step : members)
      if (step->isReduction())
        carried.push_back(
            constantVector(getIdentity(step->combiner, step->getType().getElementType()), lanes));
    emitBody(phase, members, rowIndices, indices, inner, 0, carried, 1);
  };
  auto choose = [&](bool flat, Columns &columns) -> int64_t {
    columns.shape.assign(shape.begin(), shape.end());
    if (!flat)
      columns.outer.assign(shape.begin(), shape.end() - 1);
    columns.inner = flat ? ShapedType::getNumElements(shape) : shape.back();
    Trial trial = attempt(phase, [&] { emitOnce(flat, columns); });
    columns.borders = {0, columns.inner};
    for (int64_t split : trial.splits)
      if (split > 0 && split < columns.inner)
        columns.borders.push_back(split);
    llvm::sort(columns.borders);
    columns.borders.erase(llvm::unique(columns.borders), columns.borders.end());
    return trial.gathers;
  };
  Columns flat, nested;
  int64_t flatCost = choose(true, flat);
  if (shape.size() == 1 || flatCost == 0)
    return flat;
  return choose(false, nested) < flatCost ? nested : flat;
}

/// Emits the loops of `columns` from `level` inwards. `body` receives the indices of a vector of
/// columns, and the number of the virtual lane to which the first of these columns is added.
NestBuilder::Values NestBuilder::emitLoops(
    const Columns &columns, unsigned level, SmallVector<AffineExpr> outer, Evaluator &at,
    int64_t chunk, Values carried,
    function_ref<void(Evaluator &, ArrayRef<AffineExpr>, int64_t, Values &)> body) {
  auto loop = [&](int64_t count, function_ref<void(Evaluator &, AffineExpr, Values &)> inside) {
    auto forOp = scf::ForOp::create(builder, loc, index(0), index(count), index(1), carried);
    OpBuilder::InsertionGuard guard(builder);
    if (!carried.empty() || forOp.getBody()->empty())
      builder.setInsertionPointToEnd(forOp.getBody());
    else
      builder.setInsertionPoint(forOp.getBody()->getTerminator());
    Evaluator inner(at);
    AffineExpr dim = inner.addDim(forOp.getInductionVar(), 0, count - 1);
    Values values(forOp.getRegionIterArgs());
    inside(inner, dim, values);
    if (!carried.empty())
      scf::YieldOp::create(builder, loc, values);
    carried.assign(forOp.result_begin(), forOp.result_end());
  };
  if (level < columns.outer.size()) {
    loop(columns.outer[level], [&](Evaluator &inner, AffineExpr dim, Values &values) {
      SmallVector<AffineExpr> indices(outer);
      indices.push_back(dim);
      values = emitLoops(columns, level + 1, indices, inner, chunk, values, body);
    });
    return carried;
  }
  auto emit = [&](Evaluator &inner, AffineExpr position, int64_t lanes, int64_t first,
                  Values &values) {
    Evaluator piece = inner.withLanes(lanes);
    position = position + piece.lane();
    piece.setColumn(piece.subscripts().simplify(position));
    SmallVector<AffineExpr> indices(outer);
    if (columns.outer.empty())
      indices = fsdp::delinearise(piece.subscripts(), position, columns.shape);
    else
      indices.push_back(position);
    body(piece, indices, first, values);
  };
  int64_t lanes = vectorLanes(chunk);
  for (auto [lo, hi] : llvm::zip(columns.borders, ArrayRef(columns.borders).drop_front())) {
    int64_t count = (hi - lo) / chunk;
    auto whole = [&, lo = lo](Evaluator &inner, AffineExpr start, Values &values) {
      for (int64_t first = 0; first < chunk; first += lanes)
        emit(inner, start + lo + first, lanes, first, values);
    };
    if (count == 1)
      whole(at, at.constant(0), carried);
    else if (count > 1)
      loop(count, [&](Evaluator &inner, AffineExpr dim, Values &values) {
        whole(inner, dim * chunk, values);
      });
    int64_t first = 0;
    for (int64_t rest = (hi - lo) % chunk, position = lo + count * chunk; first < rest;) {
      int64_t piece =
          std::min<int64_t>(llvm::bit_floor(uint64_t(rest - first)), vectorLanes(virtualLanes));
      emit(at, at.constant(position + first), piece, first, carried);
      first += piece;
    }
  }
  return carried;
}

/// Combines the lanes in a fixed order: the upper half with the lower half, until one lane is left.
Value NestBuilder::reduceLanes(const Step &step, ArrayRef<Value> parts) {
  Values level(parts);
  while (level.size() > 1) {
    size_t half = level.size() / 2;
    for (size_t i = 0; i < half; ++i)
      level[i] = combine(builder, loc, step.combiner, level[i], level[i + half]);
    level.resize(half);
  }
  Value value = level.front();
  auto type = dyn_cast<VectorType>(value.getType());
  if (!type)
    return value;
  for (int64_t width = type.getDimSize(0); width > 1; width /= 2) {
    auto half = [&](int64_t offset) -> Value {
      return vector::ExtractStridedSliceOp::create(builder, loc, value, ArrayRef<int64_t>{offset},
                                                   ArrayRef<int64_t>{width / 2},
                                                   ArrayRef<int64_t>{1});
    };
    Value low = half(0), high = half(width / 2);
    value = combine(builder, loc, step.combiner, low, high);
  }
  return vector::ExtractOp::create(builder, loc, value, int64_t(0));
}

void NestBuilder::emitGroup(Phase &phase, ArrayRef<Step> group, ArrayRef<int64_t> rows,
                            Evaluator &at, ArrayRef<AffineExpr> rowIndices) {
  ++log.stage;
  SmallVector<const Step *> members;
  SmallVector<int64_t> shape = *getColumnShape(group.front(), rows);
  AffineExpr zero = at.constant(0);
  bool reduces = false, scalars = ShapedType::getNumElements(shape) == 1;
  rowBufferSkip = rows.size();
  for (const Step &step : group) {
    reduces |= step.isReduction();
    members.push_back(&step);
    // A value that only steps of the same row read is kept in a row buffer in the worker's scratch.
    if (!scalars && !step.isReduction() && step.destinations.empty() &&
        !offsets.count(step.value)) {
      Type element = step.getType().getElementType();
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&phase.function.front());
      rowBuffers[step.value] =
          view(phase.worker, phase.workerBytes, ShapedType::getNumElements(shape), element);
      phase.workerBytes += llvm::alignTo(ShapedType::getNumElements(shape) *
                                             getStorageType(element).getIntOrFloatBitWidth() / 8,
                                         64);
    }
  }
  if (scalars && !reduces) {
    SmallVector<AffineExpr> column(shape.size(), zero);
    for (const Step *step : members) {
      ++log.body;
      SmallVector<AffineExpr> indices = valueIndices(*step, rowIndices, column, zero);
      Value value = at.evaluate(step->value, indices);
      emitStore(phase, *step, at, indices, value);
      if (!isa<BlockArgument>(step->value))
        phase.state.rowValues[step->value] = value;
    }
    return;
  }

  Columns columns = chooseColumns(phase, members, rowIndices, shape, at);
  int64_t chunk = reduces ? virtualLanes : vectorLanes(virtualLanes);
  int64_t width = std::min<int64_t>(virtualLanes, llvm::bit_ceil(uint64_t(columns.inner)));
  int64_t lanes = vectorLanes(width), pieces = width / lanes;
  Values carried;
  for (const Step *step : members)
    if (step->isReduction())
      carried.append(
          pieces,
          constantVector(getIdentity(step->combiner, step->getType().getElementType()), lanes));
  carried =
      emitLoops(columns, 0, {}, at, chunk, carried,
                [&](Evaluator &inner, ArrayRef<AffineExpr> column, int64_t first, Values &values) {
                  emitBody(phase, members, rowIndices, column, inner, first, values, pieces);
                });
  ++log.stage;
  unsigned next = 0;
  for (const Step *step : members) {
    if (!step->isReduction()) {
      // Later steps read the value from memory instead of computing it again.
      if (Value buffer = rowBuffers.lookup(step->value))
        phase.state.stored[step->value] = {buffer, unsigned(rows.size())};
      else if (!isa<BlockArgument>(step->value))
        phase.state.stored[step->value] = {getTargets(phase, *step).front(), 0};
      continue;
    }
    ++log.body;
    Value total = reduceLanes(*step, ArrayRef(carried).slice(next, pieces));
    next += pieces;
    SmallVector<AffineExpr> indices = valueIndices(*step, rowIndices, {}, zero);
    Value init = at.evaluate(linalg::GenericOp(step->op).getDpsInits()[step->result], indices);
    Value value = combine(builder, loc, step->combiner, init, total);
    emitStore(phase, *step, at, indices, value);
    phase.state.rowValues[step->value] = value;
  }
}

void NestBuilder::emitRow(Phase &phase, ArrayRef<Step> segment, ArrayRef<int64_t> rows,
                          Evaluator &at, AffineExpr row) {
  SmallVector<AffineExpr> rowIndices = fsdp::delinearise(at.subscripts(), row, rows);
  for (AffineExpr &expr : rowIndices)
    expr = at.subscripts().simplify(expr);
  log.watchRow(phase.state, segment, rowIndices);
  for (ArrayRef<Step> group : formGroups(segment, rows, steps))
    emitGroup(phase, group, rows, at, rowIndices);
  phase.state.onRead = nullptr;
}

bool NestBuilder::buildLongRows(ArrayRef<Step> segment, ArrayRef<int64_t> rows) {
  for (const Step &step : segment)
    if (!getColumnShape(step, rows) || step.getType().getNumElements() == 0 ||
        step.kind == StepKind::ColumnReduction)
      return false;
  int64_t count = ShapedType::getNumElements(rows);
  Phase phase = begin(count, 1);
  auto loop = scf::ForOp::create(builder, loc, phase.begin, phase.end, index(1));
  builder.setInsertionPointToStart(loop.getBody());
  Evaluator at(builder, loc, phase.state, 1);
  AffineExpr row = at.addDim(loop.getInductionVar(), 0, count - 1);
  emitRow(phase, segment, rows, at, row);
  return commit(phase, segment);
}

bool NestBuilder::buildFlat(ArrayRef<Step> segment) {
  ArrayRef<int64_t> shape = segment.front().getType().getShape();
  int64_t size = ShapedType::getNumElements(shape);
  if (size == 0)
    return false;
  SmallVector<const Step *> members;
  for (const Step &step : segment) {
    if (step.getType().getShape() != shape)
      return false;
    for (const Step *other : members)
      if (readsValue(step, other->value, steps))
        return false;
    members.push_back(&step);
  }
  Phase phase = begin(size, flatTile);
  Evaluator at(builder, loc, phase.state, 1);
  SmallVector<int64_t> columns(shape);
  if (columns.empty())
    columns.push_back(1);
  Columns choice = chooseColumns(phase, members, {}, columns, at);
  if (!choice.outer.empty() || choice.borders.size() > 2 || !phase.state.refusal.empty()) {
    eraseWithGlobals(phase.function);
    return false;
  }
  log.watch(phase.state);
  phase.state.prefetchDistance = mapPrefetchDistance;
  Values none;
  emitRange(phase, size, at, [&](Evaluator &piece, AffineExpr position) {
    SmallVector<AffineExpr> indices = fsdp::delinearise(piece.subscripts(), position, columns);
    indices.resize(shape.size());
    emitBody(phase, members, {}, indices, piece, 0, none, 1);
  });
  phase.state.onRead = nullptr;
  return commit(phase, segment);
}
