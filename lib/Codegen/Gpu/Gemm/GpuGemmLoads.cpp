//===- GpuGemmLoads.cpp - Tiles of factors in shared memory -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A tile is divided into units of 2 to 16 contiguous bytes. Thread t copies the units t, t +
// threads, .. In the source address of a unit, only one term depends on k. If a thread has few
// units, it keeps the addresses of the units in registers. Otherwise it computes the addresses
// again for each tile.
//
// Units that need no conversion are copied by cp.async, which writes zeros in place of missing
// elements. Units that need a conversion, or that are smaller than 4 bytes, are copied through
// registers.
//
//===----------------------------------------------------------------------===//

#include "GpuGemmLoads.h"
#include "Codegen/Gpu/Ptx/GpuRows.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

static constexpr int64_t chunkBytes = 16, bankBytes = 128;

bool gemm::isReadSingly(const GpuPlan &plan, const GpuSide &side) {
  return plan.element.isF32() && !side.alongK;
}

Value gemm::emitSwizzled(GpuBuilder &b, const GpuPlan &plan, const GpuSide &side, Value row,
                         Value chunk) {
  int64_t rowsOfBanks = std::max<int64_t>(bankBytes / side.rowBytes, 1),
          chunks = std::min<int64_t>(side.rowBytes / chunkBytes, 8);
  Value swizzle =
      isReadSingly(plan, side) ? b.mul(b.rem(row, 4), 2) : b.rem(b.div(row, rowsOfBanks), chunks);
  Value swizzled = b.createOrFold<arith::XOrIOp>(b.loc, chunk, swizzle);
  return b.add(b.mul(row, side.rowBytes), b.mul(swizzled, chunkBytes));
}

Value gemm::shiftSwizzled(GpuBuilder &b, int64_t rowBytes, Value pointer, Value swizzled,
                          int64_t rows, int64_t bytes) {
  int64_t mask = std::min(rowBytes, bankBytes) - 1;
  if (bytes & mask)
    swizzled = arith::XOrIOp::create(b, b.loc, swizzled, b.i32(bytes & mask));
  return b.shiftBytes(b.shiftBytes(pointer, swizzled), rows * rowBytes + (bytes & ~mask));
}

/// Returns how many elements of a unit exist. The elements have the indices `first`, `first` + 1,
/// and so on. An element exists if its index is below `limit`. If `inParts` is false, either all
/// elements of the unit exist, or none.
Value TileLoader::countUnits(Value first, Value limit, bool inParts) {
  Value all = b.i32(side.unit);
  if (!inParts)
    return b.select(b.isLess(first, limit), all, b.i32(0));
  return b.max(b.min(b.sub(limit, first), all), b.i32(0));
}

TileLoader::Unit TileLoader::makeUnit(Value row, Value col) {
  Unit unit;
  Value byte = b.mul(col, bytes());
  unit.target =
      b.add(emitSwizzled(b, plan, side, row, b.div(byte, chunkBytes)), b.rem(byte, chunkBytes));
  Value index = b.add(first, side.alongK ? row : col);
  unit.k = side.alongK ? col : row;
  if (side.size % side.width) {
    unit.rows = countUnits(index, b.i32(side.size), !side.alongK && side.size % side.unit);
    index = b.select(b.isLess(index, b.i32(side.size)), index, b.i32(0));
  }
  if (operand.access.binding < 0)
    return unit;
  Position position(problem.digits.size());
  setDigits(b, problem, position, index, side.digits);
  unit.source = b.add(common, emitOffset(b, operand.strides, position));
  unit.source = b.add(unit.source, b.mul(b.to64(unit.k), operand.strides[plan.kInner]));
  return unit;
}

/// Returns unit `number` of this thread. The number of threads and the number of units per row are
/// powers of two.
TileLoader::Unit TileLoader::makeUnit(int64_t number) {
  int64_t perRow = unitsPerRow();
  if (b.threads >= perRow)
    return makeUnit(b.add(b.div(b.thread(), perRow), number * (b.threads / perRow)),
                    b.mul(b.rem(b.thread(), perRow), side.unit));
  int64_t rounds = perRow / b.threads;
  return makeUnit(b.i32(number / rounds),
                  b.mul(b.add(b.thread(), number % rounds * b.threads), side.unit));
}

TileLoader::Unit TileLoader::makeUnit(Value number) {
  return makeUnit(b.div(number, unitsPerRow()), b.mul(b.rem(number, unitsPerRow()), side.unit));
}

void TileLoader::place(const Position &outerDigits, Value firstOfTile) {
  first = firstOfTile;
  common = b.add(emitOffset(b, operand.strides, outerDigits), operand.access.offset);
  if (unitsOfThread() > maxUnrolledCopies)
    return;
  for (int64_t i = 0; i < unitsOfThread(); ++i)
    units.push_back(makeUnit(i));
}

void TileLoader::copyAsync(Value target, Value source, Value count) {
  int64_t size = side.unit * bytes();
  auto cache =
      size == chunkBytes ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
  Value place = b.address(b.shift(binding, source));
  NVVM::CpAsyncOp::create(b, b.loc, target, place, size, cache,
                          count ? b.mul(count, bytes()) : Value());
}

/// Loads the elements of a unit and applies the unary maps of the operand.
SmallVector<Value> TileLoader::loadElements(Value source) {
  const Access &access = operand.access;
  SmallVector<Value> elements;
  if (access.binding < 0)
    elements.assign(side.unit, arith::ConstantOp::create(b, b.loc, access.splat));
  else
    elements = loadRow(b, b.shift(binding, source), side.unit, side.unit);
  for (Value &element : elements) {
    for (linalg::LinalgOp op : access.maps)
      element = b.inlineBody(op, {element, Value()}, 0).front();
    element = b.convertFloat(element, plan.element);
  }
  return elements;
}

/// Copies a unit through registers. Either all elements of the unit must exist, or none.
void TileLoader::copyMapped(Value target, Value source, Value count) {
  SmallVector<Value> elements = loadElements(source);
  if (count) {
    Value exists = b.isLess(b.i32(0), count);
    for (Value &element : elements)
      element = b.select(exists, element, b.zero(plan.element));
  }
  storeRow(b, elements, {target, plan.element, b.constant(0)}, side.unit);
}

void TileLoader::copy(const Unit &unit, Value target, Value kFirst, Value kOffset) {
  Value count = unit.rows;
  if (plan.k % plan.config.blockK) {
    Value ofK = countUnits(b.add(kFirst, unit.k), b.i32(plan.k), side.alongK && plan.k % side.unit);
    // If each row of the tile belongs to one value of k, all elements of a unit have the same k.
    if (!side.alongK)
      ofK = b.select(b.isLess(b.add(kFirst, unit.k), b.i32(plan.k)), b.i32(side.unit), b.i32(0));
    count = count ? b.min(count, ofK) : ofK;
  }
  Value source;
  if (operand.access.binding >= 0) {
    source = b.add(unit.source, kOffset);
    if (count)
      source = b.select(b.isLess(b.i32(0), count), source, b.constant(operand.access.offset));
  }
  Value place = b.shiftBytes(target, unit.target);
  side.async ? copyAsync(place, source, count) : copyMapped(place, source, count);
}

void TileLoader::fetch(Value target, Value kBlock) {
  int64_t inner = llvm::divideCeil(plan.k, plan.config.blockK);
  Position position(problem.digits.size());
  Value kFirst = b.mul(plan.kOuter.empty() ? kBlock : b.rem(kBlock, inner), plan.config.blockK);
  if (!plan.kOuter.empty())
    setDigits(b, problem, position, b.div(kBlock, inner), plan.kOuter);
  position[plan.kInner] = kFirst;
  Value kOffset = emitOffset(b, operand.strides, position);
  int64_t total = side.tileRows * unitsPerRow();
  auto guarded = [&](Value number, const Unit &unit) {
    auto run = [&] { copy(unit, target, kFirst, kOffset); };
    total % b.threads ? b.when(b.isLess(number, b.i32(total)), run) : run();
  };
  if (!units.empty()) {
    for (auto [i, unit] : llvm::enumerate(units))
      guarded(b.add(b.thread(), i * b.threads), unit);
    return;
  }
  b.loop(b.thread(), b.i32(total), b.threads,
         [&](Value number) { copy(makeUnit(number), target, kFirst, kOffset); });
}
