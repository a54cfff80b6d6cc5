//===- GpuNestRows.cpp - Rows by groups of threads --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   row = row of this block, warp or part of a warp;
//     for u = number of the thread; u < columns / width; u += threads of the row   columns
//       a0[j] += x[row, width u + j]                        group 1: reductions
//     s = tree over j, lanes, warps in order                equal in all threads
//     for u ..: y[row, width u + j] = x[row, ..] - s / n    group 2: maps
//
// Steps that run over the same columns and do not read one another form a group. All steps of a
// group are computed in one pass over the row. Between two groups, the threads of a row
// synchronise, because the second group may read what the first group stored, and may overwrite
// what the first group read.
//
// If there are few long rows that are only reduced, each row is divided into parts, with one block
// per part. The results of the parts are stored in scratch. A second launch with one thread per row
// adds these results in order.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Kernel/Segments.h"
#include "GpuNests.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t warpThreads = 32, warpBlockThreads = 128;

/// Returns the `value` of another lane: of the lane whose number is this lane's number xor `bits`.
/// The value may have any type.
Value GpuNests::exchange(Value value, int64_t bits) {
  Location loc = b.loc;
  Type type = value.getType();
  if (type.isF32() || type.isInteger(32))
    return b.exchange(value, bits);
  unsigned size = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  Type raw = b.getIntegerType(size);
  if (type.isIndex())
    value = arith::IndexCastOp::create(b, loc, raw, value);
  else if (isa<FloatType>(type))
    value = arith::BitcastOp::create(b, loc, raw, value);
  if (size < 32) {
    value = b.exchange(arith::ExtUIOp::create(b, loc, b.getI32Type(), value), bits);
    value = arith::TruncIOp::create(b, loc, raw, value);
  } else {
    Value half = arith::ConstantIntOp::create(b, loc, 32, 64);
    Value high = b.exchange(b.to32(arith::ShRUIOp::create(b, loc, value, half)), bits);
    Value low = b.exchange(b.to32(value), bits);
    auto wide = [&](Value word) -> Value { return arith::ExtUIOp::create(b, loc, raw, word); };
    value =
        arith::OrIOp::create(b, loc, arith::ShLIOp::create(b, loc, wide(high), half), wide(low));
  }
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, value);
  return isa<FloatType>(type) ? Value(arith::BitcastOp::create(b, loc, type, value)) : value;
}

/// Synchronises the threads of a row and makes their stores visible to each other.
void GpuNests::synchronise(int64_t perRow) {
  if (perRow > warpThreads)
    b.barrier();
  else if (perRow > 1)
    NVVM::SyncWarpOp::create(b, b.loc, b.i32(-1));
}

Value GpuNests::getShared(Entry &entry, Type element, int64_t elements) {
  auto type =
      MemRefType::get({elements}, element, MemRefLayoutAttrInterface(), b.getI64IntegerAttr(3));
  std::string name = entry.function.getName().str() + ".shared" + std::to_string(sharedCount++);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(entry.function);
  memref::GlobalOp::create(b, b.loc, name, b.getStringAttr("private"), type, b.getUnitAttr(),
                           /*constant=*/false, b.getI64IntegerAttr(16));
  b.setInsertionPointToStart(&entry.function.front());
  return memref::GetGlobalOp::create(b, b.loc, type, name);
}

/// Reduces a value over the threads of a row: first over each warp, then over the warps of the row
/// in order. Every thread gets the result.
Value GpuNests::reduceThreads(Entry &entry, Value value, int64_t perRow,
                              function_ref<Value(Value, Value)> combine) {
  for (int64_t bits = std::min(perRow, warpThreads) / 2; bits > 0; bits /= 2)
    value = combine(value, exchange(value, bits));
  if (perRow <= warpThreads)
    return value;
  int64_t warps = perRow / warpThreads;
  Type element = value.getType();
  Value memory = getShared(entry, getStorageType(element), warps);
  Evaluator at(b, b.loc, entry.state, 1);
  b.when(b.isEqual(b.lane(), 0), [&] {
    Evaluator inner(at);
    inner.store(value, memory, inner.addDim(toIndex(b.warp()), 0, warps - 1));
  });
  b.barrier();
  Value total;
  for (int64_t warp = 0; warp < warps; ++warp) {
    Value part = at.load(memory, element, at.constant(warp));
    total = total ? combine(total, part) : part;
  }
  b.barrier();
  return total;
}

void GpuNests::whenFirst(const RowThreads &threads, function_ref<void()> body) {
  Value condition = threads.perRow > 1 ? b.isEqual(threads.local, 0) : Value();
  if (threads.active)
    condition = condition ? b.both(condition, threads.active) : threads.active;
  if (condition)
    b.when(condition, body);
  else
    body();
}

GpuNests::Values
GpuNests::emitColumns(int64_t size, int64_t width, Evaluator &at, const RowThreads &threads,
                      Values carried,
                      function_ref<void(Evaluator &, AffineExpr, int64_t, Values &)> body) {
  int64_t vectors = size / width, rest = size % width;
  auto whole = [&](Value vector, Values values) {
    Evaluator inner(at);
    body(inner, inner.addDim(vector, 0, vectors - 1) * width, width, values);
    return values;
  };
  if (vectors == threads.perRow)
    carried = whole(threads.local, carried);
  else if (vectors)
    carried =
        b.loop(threads.local, index(vectors), threads.perRow, carried,
               [&](Value vector, ValueRange values) { return whole(vector, Values(values)); });
  if (!rest)
    return carried;
  Value mine = b.isLess(threads.local, index(rest));
  auto single = [&] {
    Values values = carried;
    Evaluator inner(at);
    body(inner, inner.addDim(threads.local, 0, rest - 1) + vectors * width, 1, values);
    return values;
  };
  if (carried.empty()) {
    b.when(mine, [&] { (void)single(); });
    return carried;
  }
  SmallVector<Type> types = llvm::map_to_vector(carried, [](Value v) { return v.getType(); });
  return b.choose(mine, types, single, [&] { return carried; });
}

/// Evaluates all steps of a group (`members`) at `count` columns. Reductions update `carried`,
/// which has `width` values per reduction. Maps are stored after all members have been evaluated.
void GpuNests::emitBody(Entry &entry, ArrayRef<Step> members, ArrayRef<int64_t> shape,
                        ArrayRef<AffineExpr> rowIndices, Evaluator &at, AffineExpr first,
                        int64_t count, int64_t width, Values &carried, Value active) {
  ++log.body;
  AffineExpr zero = at.constant(0);
  struct Store {
    const Step *step;
    SmallVector<AffineExpr> indices;
    Value value;
  };
  std::vector<Store> stores;
  for (int64_t j = 0; j < count; ++j) {
    SmallVector<AffineExpr> column = fsdp::delinearise(at.subscripts(), first + j, shape);
    unsigned reduction = 0;
    for (const Step &step : members) {
      if (step.isReduction()) {
        Value &sum = carried[reduction++ * width + j];
        sum = at.advance(step.op, step.result, sum, loopIndices(step, rowIndices, column, zero));
        continue;
      }
      SmallVector<AffineExpr> indices = valueIndices(step, rowIndices, column, zero);
      Value value = at.evaluate(step.value, indices);
      stores.push_back({&step, indices, value});
    }
  }
  auto storeThem = [&] {
    for (const Store &store : stores)
      storeAll(entry, *store.step, at, store.indices, store.value);
  };
  if (active && !stores.empty())
    b.when(active, storeThem);
  else
    storeThem();
}

/// Emits a group of steps that have only one element per row. Every thread of the row computes the
/// element, and one thread stores it.
void GpuNests::emitScalars(Entry &entry, ArrayRef<Step> group, Evaluator &at,
                           ArrayRef<AffineExpr> rowIndices, int64_t rank,
                           const RowThreads &threads) {
  SmallVector<AffineExpr> column(rank, at.constant(0));
  for (const Step &step : group) {
    ++log.body;
    SmallVector<AffineExpr> indices = valueIndices(step, rowIndices, column, at.constant(0));
    Value value = at.evaluate(step.value, indices);
    if (readsWhatItWrites())
      synchronise(threads.perRow);
    whenFirst(threads, [&] {
      // Use a copy of the evaluator, because values that are emitted in the branch are not
      // available after the branch.
      Evaluator own(at);
      storeAll(entry, step, own, indices, value);
    });
    if (!isa<BlockArgument>(step.value))
      entry.state.rowValues[step.value] = value;
  }
}

void GpuNests::emitGroup(Entry &entry, ArrayRef<Step> group, ArrayRef<int64_t> rows, Evaluator &at,
                         ArrayRef<AffineExpr> rowIndices, const RowThreads &threads) {
  if (log.stage++)
    synchronise(threads.perRow);
  SmallVector<int64_t> shape = *getColumnShape(group.front(), rows);
  bool reduces = llvm::any_of(group, [](const Step &step) { return step.isReduction(); });
  int64_t size = ShapedType::getNumElements(shape);
  if (size == 1 && !reduces)
    return emitScalars(entry, group, at, rowIndices, shape.size(), threads);
  int64_t width = chooseWidth(group, shape.back(), ShapedType::getNumElements(rows) * size);
  Values carried;
  for (const Step &step : group)
    if (step.isReduction())
      carried.append(width, identityOf(step));
  carried = emitColumns(size, width, at, threads, carried,
                        [&](Evaluator &inner, AffineExpr first, int64_t count, Values &values) {
                          emitBody(entry, group, shape, rowIndices, inner, first, count, width,
                                   values, threads.active);
                        });
  ++log.stage;
  unsigned next = 0;
  for (const Step &step : group) {
    if (!step.isReduction()) {
      // Let later steps read the value from memory.
      if (!isa<BlockArgument>(step.value))
        entry.state.stored[step.value] = {getTargets(entry, step).front(), 0};
      continue;
    }
    ++log.body;
    auto join = [&](Value a, Value c) { return combine(b, b.loc, step.combiner, a, c); };
    Values level(ArrayRef(carried).slice(next, width));
    for (next += width; level.size() > 1; level.resize(level.size() / 2))
      for (size_t i = 0; i < level.size() / 2; ++i)
        level[i] = join(level[i], level[i + level.size() / 2]);
    Value total = reduceThreads(entry, level.front(), threads.perRow, join);
    SmallVector<AffineExpr> indices = valueIndices(step, rowIndices, {}, at.constant(0));
    Value value =
        join(at.evaluate(linalg::GenericOp(step.op).getDpsInits()[step.result], indices), total);
    if (readsWhatItWrites())
      synchronise(threads.perRow);
    whenFirst(threads, [&] {
      // Use a copy of the evaluator, because values that are emitted in the branch are not
      // available after the branch.
      Evaluator own(at);
      storeAll(entry, step, own, indices, value);
    });
    entry.state.rowValues[step.value] = value;
  }
}

/// Returns the number of threads for a row of `size` columns. The number is less than the size of a
/// warp only if the number of rows is a multiple of the number of rows per block.
static int64_t chooseThreads(int64_t size, int64_t count, int64_t width) {
  int64_t vectors = llvm::divideCeil(size, width);
  if (vectors > 4 * warpThreads || (vectors > warpThreads && count < 1024))
    return std::clamp<int64_t>(llvm::bit_floor(uint64_t(vectors)), 2 * warpThreads,
                               vectors > 1024 ? 512 : 256);
  int64_t part = std::min<int64_t>(llvm::bit_ceil(uint64_t(vectors)), warpThreads);
  return count % (warpBlockThreads / part) == 0 ? part : warpThreads;
}

/// Forms groups. If `late` is true, all maps of one shape form one group even if they read one
/// another. If a map of the group reads the value of another map of the group, it evaluates the
/// other map again instead of loading the value.
SmallVector<ArrayRef<Step>> GpuNests::formGroups(ArrayRef<Step> segment, ArrayRef<int64_t> rows) {
  const Step *firstMap =
      llvm::find_if(segment, [](const Step &step) { return !step.isReduction(); });
  auto shapeOf = [&](const Step &step) { return *getColumnShape(step, rows); };
  auto sameShape = [&](const Step &step) { return shapeOf(step) == shapeOf(*firstMap); };
  ArrayRef<Step> maps(firstMap, segment.end());
  if (!late || maps.empty() || !llvm::all_of(maps, sameShape))
    return fsdp::formGroups(segment, rows, steps);
  ArrayRef<Step> reductions(segment.begin(), firstMap);
  SmallVector<ArrayRef<Step>> groups;
  if (!reductions.empty())
    groups = fsdp::formGroups(reductions, rows, steps);
  groups.push_back(maps);
  return groups;
}

bool GpuNests::buildRows(ArrayRef<Step> segment, ArrayRef<int64_t> rows) {
  int64_t widest = 1, count = ShapedType::getNumElements(rows);
  for (const Step &step : segment) {
    std::optional<SmallVector<int64_t>> shape = getColumnShape(step, rows);
    if (!shape || step.getType().getNumElements() == 0 || step.kind == StepKind::ColumnReduction ||
        ShapedType::getNumElements(*shape) == 0)
      return false;
    widest = std::max(widest, ShapedType::getNumElements(*shape));
  }
  constexpr int64_t longRow = 1 << 14;
  if (count < target.multiprocessors / 2 && widest >= longRow)
    return buildSplitRows(segment, rows);
  Entry entry = begin();
  RowThreads threads;
  threads.perRow = chooseThreads(widest, count, chooseWidth(segment, widest, count * widest));
  entry.threads = threads.perRow > warpThreads ? threads.perRow : warpBlockThreads;
  int64_t rowsPerBlock = entry.threads / threads.perRow;
  entry.blocks = llvm::divideCeil(count, rowsPerBlock);
  Value thread = toIndex(b.thread()), row = toIndex(b.block());
  threads.local = rowsPerBlock > 1 ? b.rem(thread, threads.perRow) : thread;
  if (rowsPerBlock > 1)
    row = b.add(b.mul(row, rowsPerBlock), b.div(thread, threads.perRow));
  auto emit = [&] {
    Evaluator at(b, b.loc, entry.state, 1);
    AffineExpr position = at.addDim(row, 0, count - 1);
    SmallVector<AffineExpr> indices = fsdp::delinearise(at.subscripts(), position, rows);
    for (AffineExpr &expr : indices)
      expr = at.subscripts().simplify(expr);
    log.watchRow(entry.state, segment, indices);
    for (ArrayRef<Step> group : formGroups(segment, rows))
      emitGroup(entry, group, rows, at, indices, threads);
    entry.state.onRead = nullptr;
  };
  // If the last block is not full, each row has whole warps. Warps without a row do nothing, and no
  // warp with a row waits for them.
  if (count % rowsPerBlock)
    b.when(b.isLess(row, index(count)), emit);
  else
    emit();
  return commit(entry, segment);
}

/// Emits the launches for few long rows that a single group of steps reduces.
bool GpuNests::buildSplitRows(ArrayRef<Step> segment, ArrayRef<int64_t> rows) {
  if (formGroups(segment, rows).size() != 1 || !segment.front().isReduction())
    return false;
  SmallVector<int64_t> shape = *getColumnShape(segment.front(), rows);
  int64_t count = ShapedType::getNumElements(rows), size = ShapedType::getNumElements(shape),
          width = chooseWidth(segment, shape.back(), count * size);
  for (const Step &step : segment)
    if (!step.isReduction())
      return false;
  constexpr int64_t maxParts = 1024, blockThreads = 256, minVectors = 4;
  int64_t vectors = llvm::divideCeil(size, width);
  int64_t parts = std::clamp<int64_t>(vectors / (blockThreads * minVectors), 1,
                                      maxParts / std::max<int64_t>(count, 1) + 1);
  int64_t partVectors = llvm::divideCeil(vectors, parts);
  parts = llvm::divideCeil(vectors, partVectors);
  SmallVector<int64_t> offsets;
  for (const Step &step : segment)
    offsets.push_back(
        reserve(count * parts *
                getStorageBytes(RankedTensorType::get({1}, step.getType().getElementType()))));

  Entry entry = begin();
  entry.threads = blockThreads;
  entry.blocks = count * parts;
  log.watch(entry.state);
  Evaluator at(b, b.loc, entry.state, 1);
  AffineExpr item = at.addDim(toIndex(b.block()), 0, entry.blocks - 1);
  AffineExpr row = at.subscripts().floorDiv(item, parts), part = at.subscripts().mod(item, parts);
  SmallVector<AffineExpr> indices = fsdp::delinearise(at.subscripts(), row, rows);
  Values carried;
  for (const Step &step : segment)
    carried.append(width, identityOf(step));
  ++log.body;
  auto sum = [&](Evaluator &inner, AffineExpr first, int64_t lanes, Values &values) {
    emitBody(entry, segment, shape, indices, inner, first, lanes, width, values, Value());
  };
  Value from = at.materialise(part * partVectors),
        to = b.min(b.add(from, partVectors), index(size / width));
  carried = b.loop(b.add(from, toIndex(b.thread())), to, blockThreads, carried,
                   [&](Value vector, ValueRange values) {
                     Evaluator inner(at);
                     Values next(values);
                     sum(inner, inner.addDim(vector, 0, size / width - 1) * width, width, next);
                     return next;
                   });
  // One thread of the last part processes the columns after the last whole vector.
  if (int64_t rest = size % width) {
    Value last = b.both(b.isEqual(at.materialise(part), parts - 1), b.isEqual(b.thread(), 0));
    SmallVector<Type> types = llvm::map_to_vector(carried, [](Value v) { return v.getType(); });
    carried = b.choose(
        last, types,
        [&] {
          Values values = carried;
          Evaluator inner(at);
          sum(inner, inner.constant(size - rest), rest, values);
          return values;
        },
        [&] { return carried; });
  }
  for (auto [i, step] : llvm::enumerate(segment)) {
    auto join = [&, &step = step](Value a, Value c) {
      return combine(b, b.loc, step.combiner, a, c);
    };
    Value total = carried[i * width];
    for (int64_t j = 1; j < width; ++j)
      total = join(total, carried[i * width + j]);
    total = reduceThreads(entry, total, blockThreads, join);
    b.when(b.isEqual(b.thread(), 0), [&, i = i, &step = step] {
      Evaluator own(at);
      own.store(total, view(entry, offsets[i], entry.blocks, step.getType().getElementType()),
                item);
    });
  }
  if (!commit(entry, {}))
    return false;
  Entry finish = begin();
  finishParts(finish, segment, offsets, parts);
  return commit(finish, segment);
}
