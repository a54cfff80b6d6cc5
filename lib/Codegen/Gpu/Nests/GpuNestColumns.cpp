//===- GpuNestColumns.cpp - Sums over rows, and scatters --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Emits reductions over any dimensions. A thread computes contiguous elements of the result and
// visits the reduced elements in order. If there would be too few threads, the reduced elements are
// divided into parts. The results of the parts are stored in scratch, and a second launch adds
// these results in order:
//
//   launch 1   part[p, n] = x[first of p, n] + x[.., n] + ..
//   launch 2   y[n] = init[n] + (part[0, n] + part[1, n] + ..)
//
// A scatter has one block per token. If a token is the first token with its id, its block adds the
// updates of all tokens with this id to the row of the id, in order. The blocks of the other tokens
// find an earlier token with the same id and exit. A warp examines 32 ids at a time:
//
//   for base = 32 (t / 32); base < tokens; base += 32                t: number of the token
//     found = ballot(base + lane >= t and ids[base + lane] == id);
//     for each bit of found: sum += updates[base + bit];
//
//===----------------------------------------------------------------------===//

#include "Codegen/Kernel/Segments.h"
#include "GpuNests.h"
#include "NestEntries.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t blockThreads = 128;

/// Computes `width` elements of the result, beginning with element `first`, from a part of the
/// `count` reduced elements: the elements [from, to), at most `most`.
GpuNests::Values GpuNests::sumRows(ArrayRef<Step> segment, Evaluator &at, ArrayRef<int64_t> shape,
                                   AffineExpr first, int64_t width, Value from, Value to,
                                   int64_t most, int64_t count) {
  Values carried;
  for (const Step &step : segment)
    carried.append(width, identityOf(step));
  SmallVector<int64_t> reduced = getReducedShape(segment.front());
  Values sums = b.loop(from, to, 1, carried, [&](Value row, ValueRange before) {
    Evaluator inner(at);
    AffineExpr zero = inner.constant(0), position = inner.addDim(row, 0, count - 1);
    SmallVector<AffineExpr> rows = fsdp::delinearise(inner.subscripts(), position, reduced);
    Values values(before);
    for (int64_t j = 0; j < width; ++j) {
      SmallVector<AffineExpr> column = fsdp::delinearise(inner.subscripts(), first + j, shape);
      for (auto [i, step] : llvm::enumerate(segment)) {
        Value &sum = values[i * width + j];
        sum = inner.advance(step.op, step.result, sum, loopIndices(step, column, rows, zero));
      }
    }
    return values;
  });
  sums.front().getDefiningOp()->setAttr(tripsAttr, b.getI64IntegerAttr(most));
  return sums;
}

/// Combines the results of the parts in order, and then combines the sums with the initial values.
/// In scratch, the results of the parts form a tensor [parts, elements], or for row reductions a
/// tensor [elements, parts].
void GpuNests::finishParts(Entry &entry, ArrayRef<Step> segment, ArrayRef<int64_t> offsets,
                           int64_t parts) {
  RankedTensorType type = segment.front().getType();
  int64_t size = type.getNumElements();
  // True if the results of all parts of an element are contiguous, as in row reductions.
  bool inner = segment.front().kind == StepKind::RowReduction;
  log.watch(entry.state);
  emitPositions(entry, size, 1, [&](Evaluator &at, AffineExpr position, int64_t) {
    ++log.body;
    SmallVector<AffineExpr> indices = fsdp::delinearise(at.subscripts(), position, type.getShape());
    Values memories, first;
    for (auto [step, offset] : llvm::zip_equal(segment, offsets)) {
      Type element = step.getType().getElementType();
      memories.push_back(view(entry, offset, parts * size, element));
      first.push_back(at.load(memories.back(), element, inner ? position * parts : position));
    }
    Values sums = b.loop(index(1), index(parts), 1, first, [&](Value part, ValueRange before) {
      Evaluator turn(at);
      AffineExpr at = turn.addDim(part, 0, parts - 1);
      Values values;
      for (auto [step, memory, sum] : llvm::zip_equal(segment, memories, before)) {
        Value next = turn.load(memory, step.getType().getElementType(),
                               inner ? position * parts + at : at * size + position);
        values.push_back(combine(b, b.loc, step.combiner, sum, next));
      }
      return values;
    });
    Values totals;
    for (auto [step, sum] : llvm::zip_equal(segment, sums))
      totals.push_back(combine(
          b, b.loc, step.combiner,
          at.evaluate(linalg::GenericOp(step.op).getDpsInits()[step.result], indices), sum));
    for (auto [step, total] : llvm::zip_equal(segment, totals))
      storeAll(entry, step, at, indices, total);
  });
  entry.state.onRead = nullptr;
}

bool GpuNests::buildColumns(ArrayRef<Step> segment) {
  const Step &front = segment.front();
  SmallVector<int64_t> shape(front.getType().getShape()), reduced;
  for (const Step &step : segment) {
    if (!step.op || step.getType().getShape() != ArrayRef(shape))
      return false;
    if (&step == &front)
      reduced = getReducedShape(step);
    else if (getReducedShape(step) != reduced)
      return false;
    for (const Step &other : segment)
      if (&other != &step && readsValue(step, other.value, steps))
        return false;
  }
  int64_t size = front.getType().getNumElements(), count = ShapedType::getNumElements(reduced);
  if (size == 0 || count == 0)
    return false;
  bool columns = front.kind == StepKind::ColumnReduction;
  int64_t width =
      columns ? chooseWidth(segment, shape.empty() ? 1 : shape.back(), size * count) : 1;
  constexpr int64_t maxParts = 64, minRows = 16;
  int64_t vectors = size / width;
  int64_t parts = std::clamp<int64_t>(fullThreads() / 2 / vectors, 1,
                                      std::clamp<int64_t>(count / minRows, 1, maxParts));
  int64_t partRows = llvm::divideCeil(count, parts);
  parts = llvm::divideCeil(count, partRows);
  SmallVector<int64_t> offsets;
  for (const Step &step : segment)
    if (parts > 1)
      offsets.push_back(reserve(parts * getStorageBytes(step.getType())));

  Entry entry = begin();
  log.watch(entry.state);
  emitPositions(entry, vectors * parts, 1, [&](Evaluator &at, AffineExpr item, int64_t) {
    ++log.body;
    AffineExpr first = at.subscripts().mod(item, vectors) * width,
               part = at.subscripts().floorDiv(item, vectors);
    Value from = at.materialise(part * partRows), to = b.min(b.add(from, partRows), index(count));
    Values sums = sumRows(segment, at, shape, first, width, from, to, partRows, count);
    for (auto [i, step] : llvm::enumerate(segment)) {
      for (int64_t j = 0; j < width && parts > 1; ++j)
        at.store(sums[i * width + j],
                 view(entry, offsets[i], parts * size, step.getType().getElementType()),
                 part * size + first + j);
      for (int64_t j = 0; j < width && parts == 1; ++j) {
        SmallVector<AffineExpr> indices = fsdp::delinearise(at.subscripts(), first + j, shape);
        Value init = at.evaluate(linalg::GenericOp(step.op).getDpsInits()[step.result], indices);
        sums[i * width + j] = combine(b, b.loc, step.combiner, init, sums[i * width + j]);
      }
    }
    for (auto [i, step] : llvm::enumerate(segment))
      for (int64_t j = 0; j < width && parts == 1; ++j)
        storeAll(entry, step, at, fsdp::delinearise(at.subscripts(), first + j, shape),
                 sums[i * width + j]);
  });
  entry.state.onRead = nullptr;
  if (parts == 1)
    return commit(entry, segment);
  if (!commit(entry, {}))
    return false;
  // This function stores the results of the parts as [parts, elements] for all kinds of steps.
  // finishParts() expects this order for column reductions.
  SmallVector<Step> turned(segment);
  for (Step &step : turned)
    step.kind = StepKind::ColumnReduction;
  Entry finish = begin();
  finishParts(finish, turned, offsets, parts);
  return commit(finish, segment);
}

/// Adds updates to row `row`: those of the tokens with the id `id`, beginning with `token`.
void GpuNests::emitToken(Entry &entry, const Step &step, Evaluator &at, AffineExpr token, Value id,
                         Value row) {
  auto op = cast<ScatterAddRowsOp>(step.value.getDefiningOp());
  Type element = step.getType().getElementType();
  auto ids = cast<RankedTensorType>(op.getIds().getType());
  int64_t tokens = ids.getNumElements(), columns = step.getType().getDimSize(1);
  int64_t width = chooseWidth(step, columns, tokens * columns), vectors = columns / width;
  Values targets = getTargets(entry, step);
  Value lane = toIndex(b.lane()), start = at.materialise(token);
  AffineExpr rowDim = at.addDim(row, 0, step.getType().getDimSize(0) - 1);
  // All threads of a warp run the same iterations. Threads beyond the last column store nothing.
  b.loop(index(0), index(llvm::alignTo(vectors, entry.threads)), entry.threads, [&](Value turn) {
    Evaluator inner(at);
    Value vector = b.add(turn, toIndex(b.thread())), active = b.isLess(vector, index(vectors));
    AffineExpr first = inner.addDim(b.min(vector, index(vectors - 1)), 0, vectors - 1) * width;
    SmallVector<Type> types(width, element);
    Values sums = b.choose(
        active, types,
        [&] {
          // Use a copy of the evaluator, because values that are emitted in the branch are not
          // available after the branch.
          Evaluator own(inner);
          Values old;
          for (int64_t j = 0; j < width; ++j)
            old.push_back(own.load(targets.front(), element, rowDim * columns + first + j));
          return old;
        },
        [&] { return Values(width, b.zero(element)); });
    Value from = b.mul(b.div(start, 32), 32);
    sums = b.loop(from, index(tokens), 32, sums, [&](Value base, ValueRange before) {
      Value mine = b.add(base, lane);
      Evaluator looking(inner);
      AffineExpr at = looking.addDim(b.min(mine, index(tokens - 1)), 0, tokens - 1);
      Value other = looking.evaluate(op.getIds(),
                                     fsdp::delinearise(looking.subscripts(), at, ids.getShape()));
      Value same = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::eq, other, id);
      same = b.both(same, arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::sge, mine, start));
      same = b.both(same, b.isLess(mine, index(tokens)));
      Value found = NVVM::VoteSyncOp::create(b, b.loc, b.getI32Type(), b.i32(-1), same,
                                             NVVM::VoteSyncKind::ballot);
      Value many = math::CtPopOp::create(b, b.loc, found);
      Values first32(before);
      first32.push_back(found);
      Values after = b.loop(index(0), toIndex(many), 1, first32, [&](Value, ValueRange values) {
        Value bits = values.back(), bit = math::CountTrailingZerosOp::create(b, b.loc, bits);
        Evaluator adding(inner);
        AffineExpr at = adding.addDim(b.add(base, toIndex(bit)), 0, tokens - 1);
        SmallVector<AffineExpr> indices =
            fsdp::delinearise(adding.subscripts(), at, ids.getShape());
        Values next;
        for (int64_t j = 0; j < width; ++j) {
          SmallVector<AffineExpr> place(indices);
          place.push_back(first + j);
          next.push_back(b.addf(values[j], adding.evaluate(op.getUpdates(), place)));
        }
        next.push_back(arith::AndIOp::create(b, b.loc, bits, b.sub(bits, b.i32(1))));
        return next;
      });
      after.pop_back();
      return after;
    });
    b.when(active, [&] {
      for (int64_t j = 0; j < width; ++j)
        for (Value target : targets)
          inner.store(sums[j], target, rowDim * columns + first + j);
    });
  });
}

bool GpuNests::buildScatter(const Step &step) {
  auto op = cast<ScatterAddRowsOp>(step.value.getDefiningOp());
  RankedTensorType type = step.getType();
  auto ids = cast<RankedTensorType>(op.getIds().getType());
  int64_t tokens = ids.getNumElements();
  if (type.getNumElements() == 0 || tokens == 0)
    return false;

  // A first launch stores the initial value to the buffer of the sums, unless the value is there.
  bool inPlace =
      op.getInit() && step.destinations.size() == 1 && op.getInit() == step.destinations.front();
  if (!inPlace) {
    Entry entry = begin();
    log.watch(entry.state);
    int64_t size = type.getNumElements(), width = chooseWidth(step, size, size);
    emitPositions(entry, size, width, [&](Evaluator &at, AffineExpr first, int64_t count) {
      ++log.body;
      Values values;
      auto place = [&](int64_t j) {
        return fsdp::delinearise(at.subscripts(), first + j, type.getShape());
      };
      for (int64_t j = 0; j < count; ++j)
        values.push_back(op.getInit() ? at.evaluate(op.getInit(), place(j))
                                      : b.zero(type.getElementType()));
      for (int64_t j = 0; j < count; ++j)
        storeAll(entry, step, at, place(j), values[j]);
    });
    if (!commit(entry, {}))
      return false;
  }

  Entry entry = begin();
  entry.threads = blockThreads;
  entry.blocks = tokens;
  log.watch(entry.state);
  Evaluator at(b, b.loc, entry.state, 1);
  AffineExpr token = at.addDim(toIndex(b.block()), 0, tokens - 1);
  auto idAt = [&](Evaluator &where, AffineExpr position) {
    return where.evaluate(op.getIds(),
                          fsdp::delinearise(where.subscripts(), position, ids.getShape()));
  };
  Value id = idAt(at, token), none = b.i32(0);
  Value earlier = b.loop(toIndex(b.thread()), at.materialise(token), blockThreads, none,
                         [&](Value other, ValueRange before) {
                           Evaluator inner(at);
                           AffineExpr place = inner.addDim(other, 0, tokens - 1);
                           Value same = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::eq,
                                                              id, idAt(inner, place));
                           Value bit = arith::ExtUIOp::create(b, b.loc, b.getI32Type(), same);
                           return Values{arith::OrIOp::create(b, b.loc, before.front(), bit)};
                         })
                      .front();
  earlier =
      reduceThreads(entry, earlier, blockThreads, [&](Value a, Value c) { return b.either(a, c); });
  Value row = arith::IndexCastOp::create(b, b.loc, b.getIndexType(), id);
  b.when(b.isEqual(earlier, 0), [&] { emitToken(entry, step, at, token, id, row); });
  entry.state.onRead = nullptr;
  log.store(step, {});
  return commit(entry, step);
}
