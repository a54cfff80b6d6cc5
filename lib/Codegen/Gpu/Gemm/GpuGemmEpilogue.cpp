//===- GpuGemmEpilogue.cpp - From accumulators to results -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A thread computes strips of up to 16 bytes of contiguous results. The inputs of the elementwise
// ops are loaded for several strips before the first strip is computed. Loads are as wide as the
// alignment of addresses allows. If all elements of a strip read the same value, the value is
// loaded once.
//
// If k is split, sums are stored in scratch as [part][outer][row][col]. The parts are added in
// order, so results are reproducible.
//
//===----------------------------------------------------------------------===//

#include "GpuGemmEpilogue.h"
#include "Codegen/Gpu/Ptx/GpuRows.h"
#include "FactorSums.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

/// Number of strips whose loads are issued together.
static constexpr int64_t stripsTogether = 4;

GpuEpilogue::GpuEpilogue(GpuBuilder &b, const Problem &problem, const GpuPlan &plan,
                         func::FuncOp kernel)
    : b(b), problem(problem), plan(plan) {
  for (BlockArgument argument : kernel.getArguments())
    bindings.push_back(b.binding(argument));
}

bool gemm::startsFromZero(const Problem &problem) {
  const Access &init = problem.init.access;
  return init.binding < 0 && init.maps.empty() && cast<FloatAttr>(init.splat).getValue().isZero();
}

/// Returns the condition that an element is in the result. Returns null if all elements of all
/// tiles are in the result.
Value GpuEpilogue::existsAt(Value row, Value col) {
  Value exists;
  if (plan.lhs.size % plan.tileRows())
    exists = b.isLess(row, b.i32(plan.lhs.size));
  if (plan.rhs.size % plan.config.blockCols) {
    Value inRow = b.isLess(col, b.i32(plan.rhs.size));
    exists = exists ? b.both(exists, inRow) : inRow;
  }
  return exists;
}

void GpuEpilogue::forEachStrip(const StagedSums &staged, Value thread, int64_t threads,
                               function_ref<void(ArrayRef<Strip>, SumsOf)> body) {
  int64_t perRow = staged.cols / plan.storeCols, total = staged.rows * perRow;
  int64_t together = std::clamp<int64_t>(total / threads, 1, stripsTogether);
  b.loop(thread, b.i32(total), together * threads, [&](Value first) {
    SmallVector<Strip> strips;
    SmallVector<Value> places;
    for (int64_t i = 0; i < together; ++i) {
      Value number = b.add(first, i * threads), row = b.div(number, perRow),
            col = b.mul(b.rem(number, perRow), plan.storeCols);
      places.push_back(b.shiftBytes(staged.begin, b.add(b.mul(row, staged.pitch), b.mul(col, 4))));
      Strip strip{staged.outer, b.add(staged.firstRow, row), b.add(staged.firstCol, col), Value()};
      strip.exists = existsAt(strip.row, strip.col);
      strips.push_back(strip);
    }
    body(strips, [&](unsigned i) {
      return loadRow(b, {places[i], b.getF32Type(), b.constant(0)}, plan.storeCols, plan.storeCols);
    });
  });
}

Position GpuEpilogue::positionOf(const Strip &strip) {
  Position position(problem.digits.size());
  setDigits(b, problem, position, strip.outer, plan.outer);
  setDigits(b, problem, position, strip.row, plan.lhs.digits);
  setDigits(b, problem, position, strip.col, plan.rhs.digits);
  return position;
}

Pointer GpuEpilogue::placeOf(const Operand &operand, const Position &position) {
  Value offset = b.add(emitOffset(b, operand.strides, position), operand.access.offset);
  return b.shift(bindings[operand.access.binding], offset);
}

GpuEpilogue::Row GpuEpilogue::load(const Operand &operand, const Position &position) {
  const Access &access = operand.access;
  if (access.binding < 0)
    return Row(plan.storeCols, arith::ConstantOp::create(b, b.loc, access.splat));
  Pointer place = placeOf(operand, position);
  int64_t stride = colStride(operand.strides);
  if (stride == 0)
    return Row(plan.storeCols, b.load(access.elementType, place));
  if (stride == 1)
    return loadRow(b, place, plan.storeCols, alignedColumns(problem, plan, operand));
  Row row;
  for (int64_t i = 0; i < plan.storeCols; ++i)
    row.push_back(b.load(access.elementType, b.shift(place, b.constant(i * stride))));
  return row;
}

GpuEpilogue::Row GpuEpilogue::applyMaps(const Operand &operand, Row row) {
  for (linalg::LinalgOp op : operand.access.maps)
    for (Value &value : row)
      value = b.inlineBody(op, {value, Value()}, 0).front();
  return row;
}

/// Emits the load of a strip's elements of `operand`. If the strip does not exist at run time, the
/// code uses zeros instead of loading, because another thread may write at the address of the
/// strip.
GpuEpilogue::Row GpuEpilogue::loadExisting(const Operand &operand, const Strip &strip,
                                           const Position &position) {
  if (!strip.exists || operand.access.binding < 0)
    return applyMaps(operand, load(operand, position));
  SmallVector<Type> types(plan.storeCols, operand.access.elementType);
  Row row = b.choose(
      strip.exists, types, [&] { return load(operand, position); },
      [&] { return Row(plan.storeCols, b.zero(operand.access.elementType)); });
  return applyMaps(operand, row);
}

void GpuEpilogue::store(const StoreStep &step, const Position &position, const Row &values) {
  Pointer place = placeOf(step.dest, position);
  int64_t stride = colStride(step.dest.strides);
  if (stride == 1)
    return storeRow(b, values, place, alignedColumns(problem, plan, step.dest));
  for (auto [i, value] : llvm::enumerate(values))
    b.store(value, b.shift(place, b.constant(static_cast<int64_t>(i) * stride)));
}

Pointer GpuEpilogue::partOf(const Strip &strip, Value split) {
  Value outer = b.add(b.mul(b.to64(split), plan.outerCount), b.to64(strip.outer));
  Value row = b.add(b.mul(outer, plan.lhs.size), b.to64(strip.row)),
        place = b.add(b.mul(row, plan.rhs.size), b.to64(strip.col));
  if (plan.packedBytes() > 0)
    place = b.add(place, plan.packedBytes() / 4);
  return b.shift(b.scratch(b.getF32Type()), place);
}

void GpuEpilogue::keep(const Strip &strip, Value split, ArrayRef<Value> sums) {
  auto run = [&] { storeRow(b, sums, partOf(strip, split), plan.storeCols); };
  strip.exists ? b.when(strip.exists, run) : run();
}

/// Returns the number of parts of k of the tile that contains a strip.
Value GpuEpilogue::partsOf(const Strip &strip) {
  Value tile = emitTileNumber(b, plan, strip.row, strip.col);
  tile = b.add(tile, b.mul(strip.outer, plan.rowTiles() * plan.colTiles()));
  return plan.uneven->partsOf(b, tile);
}

SmallVector<Value> GpuEpilogue::collect(const Strip &strip) {
  auto part = [&](int64_t split) {
    return loadRow(b, partOf(strip, b.i32(split)), plan.storeCols, plan.storeCols);
  };
  SmallVector<Type> types(plan.storeCols, b.getF32Type());
  auto run = [&] {
    int64_t least = plan.uneven ? plan.uneven->leastParts() : plan.splits;
    Value count = least < plan.splits ? partsOf(strip) : Value();
    SmallVector<Row> parts;
    for (int64_t split = 0; split < plan.splits; ++split)
      parts.push_back(split < least
                          ? part(split)
                          : b.choose(
                                b.isLess(b.i32(split), count), types, [&] { return part(split); },
                                // A sum keeps its bits if -0 is added.
                                [&] { return Row(plan.storeCols, b.number(-0.0)); }));
    Row sums = parts.front();
    for (const Row &values : ArrayRef(parts).drop_front())
      for (auto [sum, value] : llvm::zip_equal(sums, values))
        sum = b.addf(sum, value);
    return sums;
  };
  if (!strip.exists)
    return run();
  return b.choose(strip.exists, types, run, [&] { return Row(plan.storeCols, b.number(0)); });
}

Value GpuEpilogue::indexOf(ArrayRef<int64_t> strides, const Position &position, int64_t lane) {
  Value index = b.add(emitOffset(b, strides, position), lane * colStride(strides));
  return arith::IndexCastOp::create(b, b.loc, b.getIndexType(), index);
}

SmallVector<GpuEpilogue::Row> GpuEpilogue::results(const Loaded &loaded, Row sums) {
  SmallVector<Row> results(problem.stores.size());
  for (int64_t lane = 0; lane < plan.storeCols; ++lane) {
    Value sum = sums[lane];
    if (!startsFromZero(problem))
      sum = b.addf(sum, b.convertFloat(loaded.init[lane], b.getF32Type()));
    DenseMap<Value, Value> values = emitMaps(
        b, problem, sum, 0, [&](unsigned load) { return loaded.loads[load][lane]; },
        [&](unsigned map, unsigned loop) {
          return indexOf(problem.maps[map].indexStrides[loop], loaded.position, lane);
        });
    for (auto [result, store] : llvm::zip_equal(results, problem.stores))
      result.push_back(values.lookup(store.value));
  }
  return results;
}

void GpuEpilogue::finish(const Strip &strip, const Loaded &loaded, Row sums) {
  SmallVector<Row> computed = results(loaded, std::move(sums));
  auto run = [&] {
    for (auto [step, result] : llvm::zip_equal(problem.stores, computed))
      store(step, loaded.position, result);
  };
  strip.exists ? b.when(strip.exists, run) : run();
}

GpuEpilogue::Loaded GpuEpilogue::loadAll(const Strip &strip,
                                         function_ref<bool(const Operand &)> isElsewhere) {
  Loaded loaded;
  loaded.position = positionOf(strip);
  auto loadRow = [&](const Operand &operand) {
    return isElsewhere && isElsewhere(operand) ? Row()
                                               : loadExisting(operand, strip, loaded.position);
  };
  if (!startsFromZero(problem))
    loaded.init = loadRow(problem.init);
  for (const Operand &operand : problem.loads)
    loaded.loads.push_back(loadRow(operand));
  return loaded;
}

void GpuEpilogue::setInput(Loaded &loaded, const Operand &operand, Row values) {
  Row &row =
      &operand == &problem.init ? loaded.init : loaded.loads[&operand - problem.loads.data()];
  row = applyMaps(operand, std::move(values));
}

void GpuEpilogue::finish(ArrayRef<Strip> strips, SumsOf sums) {
  SmallVector<Loaded> loaded;
  for (const Strip &strip : strips)
    loaded.push_back(loadAll(strip));
  for (auto [i, strip] : llvm::enumerate(strips))
    finish(strip, loaded[i], sums(i));
}

void GpuEpilogue::finishOrKeep(ArrayRef<Strip> strips, Value split, SumsOf sums) {
  if (plan.splits == 1)
    return finish(strips, sums);
  for (auto [i, strip] : llvm::enumerate(strips))
    keep(strip, split, sums(i));
}

/// Adds the parts of k and computes the results, one strip per thread.
static void emitFinish(GpuBuilder &b, const Problem &problem, const GpuPlan &plan,
                       func::FuncOp kernel) {
  int64_t perRow = plan.rhs.size / plan.storeCols, total = plan.outerCount * plan.lhs.size * perRow;
  Value number = b.add(b.mul(b.block(), b.threads), b.thread());
  Value rowNumber = b.div(number, perRow);
  Strip strip{b.div(rowNumber, plan.lhs.size), b.rem(rowNumber, plan.lhs.size),
              b.mul(b.rem(number, perRow), plan.storeCols),
              total % b.threads ? b.isLess(number, b.i32(total)) : Value()};
  GpuEpilogue epilogue(b, problem, plan, kernel);
  epilogue.finish(strip, [&](unsigned) { return epilogue.collect(strip); });
  if (plan.sums)
    addFactorSumShares(b, problem, plan, kernel, number);
}

int64_t gemm::sumBlocks(const GpuPlan &plan) {
  int64_t strips = plan.outerCount * plan.lhs.size * plan.rhs.size / plan.storeCols;
  return llvm::divideCeil(std::max(strips, plan.sums ? plan.summed()->size : 0), sumThreads);
}

void gemm::addPartSums(func::FuncOp kernel, const Problem &problem, const GpuPlan &plan,
                       ModuleOp entries, GpuKernel &info) {
  if (plan.splits == 1)
    return;
  GpuBuilder b(kernel.getLoc(), kernel.getContext(), sumThreads);
  std::string symbol = kernel.getName().str() + "_sum";
  b.enter(entries, kernel, symbol, 1, /*scratch=*/true);
  emitFinish(b, problem, plan, kernel);
  b.leave();
  GpuLaunch launch{symbol, sumBlocks(plan), sumThreads};
  launch.cost = costOfPartSums(problem, plan);
  info.launches.push_back(std::move(launch));
}
