//===- FactorSums.cpp - Sums of a factor over k -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Adds the elements of one factor of a contraction over k, from the tiles that are in shared memory
// for the products. The gradient of a bias is such a sum: rhs is the gradient of the output.
//
//   tile of k, 64 rows of the factor       threads 0 .. pairs - 1    rows 0 .. r - 1
//   +------------------------------+       threads pairs ..          rows r .. 2r - 1
//   | columns 0 1 | columns 2 3 | ..       ..
//
// 1. While the tensor cores multiply a tile of k, each thread adds two columns of a range of rows
//    in f32: even and odd rows separately, then both to its sums.
// 2. After the last tile of k, the sums of the ranges pass through shared memory one after another,
//    and are added in order.
// 3. If k is in parts, tile i of k is added by the block whose tile of the other factor has the
//    number i mod `sumShares`. The sums are kept in scratch, [part, share, column], behind those of
//    the products. A second launch adds them in order. Otherwise the blocks with the first tile of
//    the other factor add all tiles of k.
//
// The order of additions depends only on the plan, so the bits are the same in every run.
//
//===----------------------------------------------------------------------===//

#include "FactorSums.h"
#include "Codegen/Gpu/Ptx/GpuRows.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

static constexpr int64_t panelBytes = Sm90Builder::panelBytes, panel = Sm90Builder::panelCols,
                         chunkBytes = 16, bytes = 2, sumBytes = 4;

/// Returns the element of scratch in which a share of a part of k keeps the sum of a column.
static Pointer shareAt(GpuBuilder &b, const GpuPlan &plan, Value part, Value share, Value column) {
  int64_t before = plan.splits * plan.outerCount * plan.lhs.size * plan.rhs.size;
  Value row = b.add(b.mul(part, plan.sumShares), share);
  Value index = b.add(b.mul(b.to64(row), plan.summed()->size), b.to64(column));
  return b.shift(b.scratch(b.getF32Type()), b.add(index, before));
}

static Pointer placeOf(GpuBuilder &b, const Problem &problem, const GpuPlan &plan,
                       func::FuncOp kernel, const Operand &operand, Value column) {
  Position position(problem.digits.size());
  setDigits(b, problem, position, column, plan.summed()->digits);
  Value offset = b.add(emitOffset(b, operand.strides, position), operand.access.offset);
  return b.shift(b.binding(kernel.getArgument(operand.access.binding)), offset);
}

/// Stores init + total.
static void storeTotal(GpuBuilder &b, const Problem &problem, const GpuPlan &plan,
                       func::FuncOp kernel, Value column, Value total) {
  const FactorSum &sum = *problem.factorSum;
  Value init = sum.init.access.binding < 0
                   ? Value(arith::ConstantOp::create(b, b.loc, sum.init.access.splat))
                   : b.load(b.getF32Type(), placeOf(b, problem, plan, kernel, sum.init, column));
  b.store(b.addf(init, total), placeOf(b, problem, plan, kernel, sum.dest, column));
}

/// Returns the number of the tile of the factor that is not summed.
Value FactorSums::shareOf(const Tile &tile) {
  return plan.sumsLhs ? b.div(tile.firstCol, plan.config.blockCols)
                      : b.div(tile.firstRow, plan.config.blockRows);
}

SmallVector<Value> FactorSums::addRows(const Tile &tile, Value stage, ValueRange sums) {
  int64_t rows = plan.config.blockK / groups();
  Value column = b.mul(b.rem(tile.thread, pairs()), 2),
        first = b.mul(b.div(tile.thread, pairs()), rows), inPanel = b.rem(column, panel);
  Value own = b.add(b.mul(b.div(column, panel), plan.config.blockK * panelBytes),
                    b.add(b.mul(first, panelBytes), b.mul(inPanel, bytes)));
  Value begin = b.shiftBytes(stage, side.offset);
  SmallVector<Value> even, odd;
  for (int64_t row = 0; row < rows; ++row) {
    // The chunk of a row is at its number xor the row mod 8.
    Value swizzled = b.createOrFold<arith::XOrIOp>(
        b.loc, own, b.i32(row % (panelBytes / chunkBytes) * chunkBytes));
    Pointer place{b.shiftBytes(b.shiftBytes(begin, swizzled), row * panelBytes), b.getI32Type(),
                  b.constant(0)};
    SmallVector<Value> &half = row % 2 ? odd : even;
    SmallVector<Value> pair = unpackWord(b, b.load(place.type, place), plan.element);
    for (auto [i, value] : llvm::enumerate(pair)) {
      Value wide = b.convertFloat(value, b.getF32Type());
      if (row < 2)
        half.push_back(wide);
      else
        half[i] = b.addf(half[i], wide);
    }
  }
  SmallVector<Value> next;
  for (auto [sum, a, c] : llvm::zip_equal(sums, even, odd))
    next.push_back(b.addf(sum, b.addf(a, c)));
  return next;
}

SmallVector<Value> FactorSums::add(const Tile &tile, Value kBlock, Value stage, ValueRange sums) {
  Value isOwn = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::eq,
                                      b.rem(kBlock, plan.sumShares), shareOf(tile));
  if (pairs() * groups() < threads)
    isOwn = b.both(isOwn, b.isLower(tile.thread, pairs() * groups()));
  return b.choose(
      isOwn, sums.getTypes(),
      [&] {
        SmallVector<Value> next = addRows(tile, stage, sums);
        b.syncWarp(); // all lanes have read before a lane releases the stage
        return next;
      },
      [&] { return SmallVector<Value>(sums); });
}

/// Stores the sum of a column, or keeps it in scratch.
void FactorSums::store(const Tile &tile, Value inTile, Value total) {
  Value column = b.add(plan.sumsLhs ? tile.firstRow : tile.firstCol, inTile);
  b.when(b.isLower(column, side.size), [&] {
    if (plan.splits == 1)
      storeTotal(b, problem, plan, kernel, column, total);
    else
      b.store(total, shareAt(b, plan, tile.part, shareOf(tile), column));
  });
}

void FactorSums::finish(const Tile &tile, ValueRange sums, Value shared) {
  // Barriers 1 and 2 belong to the warpgroups.
  Value barrier = b.i32(3), group = b.div(tile.thread, pairs()),
        column = b.mul(b.rem(tile.thread, pairs()), 2);
  Pointer own{b.shiftBytes(shared, b.mul(column, sumBytes)), b.getF32Type(), b.constant(0)};
  auto sync = [&] { b.syncNamed(barrier, threads); };
  b.when(b.isLower(shareOf(tile), plan.sumShares), [&] {
    SmallVector<Value> totals(sums);
    for (int64_t other = 1; other < groups(); ++other) {
      sync(); // the sums before have been read
      b.when(b.isEqual(group, other), [&] { b.storePair(sums[0], sums[1], own); });
      sync();
      SmallVector<Value> values = loadRow(b, own, 2, 2);
      for (auto [total, value] : llvm::zip_equal(totals, values))
        total = b.addf(total, value);
    }
    b.when(b.isEqual(group, 0), [&] {
      for (int64_t i : {0, 1})
        store(tile, b.add(column, i), totals[i]);
    });
  });
}

void gemm::addFactorSumShares(GpuBuilder &b, const Problem &problem, const GpuPlan &plan,
                              func::FuncOp kernel, Value number) {
  int64_t least = plan.uneven ? plan.uneven->leastParts() : plan.splits;
  b.when(b.isLower(number, plan.summed()->size), [&] {
    SmallVector<Value> counts(plan.sumShares);
    for (int64_t share = 0; share < plan.sumShares && least < plan.splits; ++share) {
      Value other = b.i32(share * (plan.sumsLhs ? plan.config.blockCols : plan.config.blockRows));
      counts[share] =
          plan.uneven->partsOf(b, plan.sumsLhs ? emitTileNumber(b, plan, number, other)
                                               : emitTileNumber(b, plan, other, number));
    }
    Value total;
    for (int64_t part = 0; part < plan.splits; ++part)
      for (int64_t share = 0; share < plan.sumShares; ++share) {
        auto load = [&] {
          return b.load(b.getF32Type(), shareAt(b, plan, b.i32(part), b.i32(share), number));
        };
        // A sum keeps its bits if -0 is added.
        Value value = part < least ? load()
                                   : b.choose(
                                          b.isLess(b.i32(part), counts[share]), b.getF32Type(),
                                          [&] { return SmallVector<Value>{load()}; },
                                          [&] { return SmallVector<Value>{b.number(-0.0)}; })
                                         .front();
        total = total ? b.addf(total, value) : value;
      }
    storeTotal(b, problem, plan, kernel, number, total);
  });
}
