//===- Sm80Gemm.cpp - Contractions with mma.sync ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   fetch the first stages - 1 tiles of k;
//   for each tile of k
//     wait for this tile; barrier;
//     fetch the tile that is stages - 1 ahead into the buffer of the previous tile;
//     sums += products of this tile;
//   barrier; sums to shared memory; barrier;
//   for each strip of the block's tile: load all other inputs, compute, store;
//
// After the barrier of an iteration, the tile is visible to all warps, and all warps have read the
// previous tile. If k is split, the blocks store their sums in scratch. A second launch then adds
// the sums and applies the epilogue.
//
//===----------------------------------------------------------------------===//

#include "GpuGemmEpilogue.h"
#include "GpuGemmLoads.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;
using namespace mlir::fsdp::tile;

namespace {
class Sm80Gemm {
public:
  Sm80Gemm(Sm80Tiles &b, const Problem &problem, const GpuPlan &plan, func::FuncOp kernel)
      : b(b), problem(problem), plan(plan), config(plan.config), kernel(kernel),
        layout(Layout::mmaSums(config.warpRows, config.warpCols)) {}
  void emit();

private:
  void placeBlock();
  void placeParts();
  void placeLanes();
  TileLoader loader(const GpuSide &side, const Operand &operand, Value first);
  Value stageAt(Value stage) { return b.shiftBytes(b.sharedAt(0), stage); }
  void fetch(Value number, Value stage);
  Value next(Value stage);
  Value laneOf(const GpuSide &side, bool down, Value warpFirst);
  Value laneOfNumbers(const GpuSide &side, Value warpFirst);
  Sm80Tiles::Factor rowsFactor(Value stage, int64_t piece, int64_t k);
  std::array<Sm80Tiles::Factor, 2> colsFactors(Value stage, int64_t piece, int64_t k);
  Fragment multiply(Fragment sums, Value stage);
  Fragment runLoop();
  void stageSums(const Fragment &sums);
  void finishStrips();

  Sm80Tiles &b;
  const Problem &problem;
  const GpuPlan &plan;
  const GpuConfig &config;
  func::FuncOp kernel;
  Layout layout;

  Value outer, split, firstRow, firstCol; ///< position of the tile that the block computes
  Value warpRow, warpCol;                 ///< first row and column of the warp within this tile
  Value kFirst, kCount;                   ///< first tile of k, and number of tiles of k
  // Swizzled offset in bytes of the first element that a lane loads: of lhs (`rowLane`) and of rhs
  // (`colLane`).
  Value rowLane, colLane;
  std::optional<TileLoader> lhs, rhs;
};
} // namespace

void Sm80Gemm::placeBlock() {
  int64_t tiles = plan.rowTiles() * plan.colTiles();
  Value rest = b.div(b.block(), tiles);
  split = b.rem(rest, plan.splits);
  outer = b.div(rest, plan.splits);
  std::tie(firstRow, firstCol) = emitTile(b, plan, b.rem(b.block(), tiles));
}

/// Sets this block's range of tiles of k. The lengths of the ranges differ by at most one tile.
void Sm80Gemm::placeParts() {
  if (plan.splits == 1) {
    kFirst = b.i32(0);
    kCount = b.i32(plan.kBlocks);
    return;
  }
  Value end = b.div(b.mul(b.add(split, 1), plan.kBlocks), plan.splits);
  kFirst = b.div(b.mul(split, plan.kBlocks), plan.splits);
  kCount = b.sub(end, kFirst);
}

TileLoader Sm80Gemm::loader(const GpuSide &side, const Operand &operand, Value first) {
  Pointer binding = operand.access.binding < 0
                        ? Pointer()
                        : b.binding(kernel.getArgument(operand.access.binding));
  TileLoader made(b, problem, plan, side, operand, binding);
  Position position(problem.digits.size());
  setDigits(b, problem, position, outer, plan.outer);
  made.place(position, first);
  return made;
}

/// Returns the offset of the row whose address a lane provides to ldmatrix. ldmatrix loads a square
/// of 2 x 2 matrices. If `down` is true, matrix 1 is below matrix 0 in the tile. Otherwise, matrix
/// 1 is to the right of matrix 0.
Value Sm80Gemm::laneOf(const GpuSide &side, bool down, Value warpFirst) {
  Value lane = b.lane();
  Value row = down ? b.rem(lane, 16) : b.add(b.rem(lane, 8), b.mul(b.div(lane, 16), 8));
  Value chunk = down ? b.div(lane, 16) : b.rem(b.div(lane, 8), 2);
  if (side.alongK)
    row = b.add(row, warpFirst);
  else
    chunk = b.add(chunk, b.div(b.mul(warpFirst, b.elementBytes()), 16));
  return emitSwizzled(b, plan, side, row, chunk);
}

/// Returns the offset of the f32 element that lane l loads if each row of the tile belongs to one
/// value of k: column l/4 of row l%4.
Value Sm80Gemm::laneOfNumbers(const GpuSide &side, Value warpFirst) {
  Value col = b.add(b.rowOfLane(), warpFirst);
  return b.add(emitSwizzled(b, plan, side, b.rem(b.lane(), 4), b.div(col, 4)),
               b.mul(b.rem(col, 4), 4));
}

void Sm80Gemm::placeLanes() {
  auto place = [&](const GpuSide &side, bool isRows, Value warpFirst) {
    if (isReadSingly(plan, side))
      return laneOfNumbers(side, warpFirst);
    return laneOf(side, isRows == side.alongK, warpFirst);
  };
  rowLane = place(plan.lhs, true, warpRow);
  colLane = place(plan.rhs, false, warpCol);
}

/// Loads single elements in the order in which mma expects its left factor. The elements are in
/// rows k and k + 4 of column `col`. If `both` is true, the elements in these rows of column col +
/// 8 are loaded, too.
static SmallVector<Value> loadNumbers(GpuBuilder &b, const GpuSide &side, Value tile, Value lane,
                                      int64_t col, int64_t k, bool both) {
  SmallVector<Value> words;
  for (int64_t down : {0, 4})
    for (int64_t right : {0, 8}) {
      if (right && !both)
        continue;
      // The swizzle is the same for row r and row r + 4.
      int64_t mask = std::min<int64_t>(side.rowBytes, 128) - 1, bytes = (col + right) * 4;
      Value place =
          bytes & mask ? Value(arith::XOrIOp::create(b, b.loc, lane, b.i32(bytes & mask))) : lane;
      Value address =
          b.shiftBytes(b.shiftBytes(tile, place), (k + down) * side.rowBytes + (bytes & ~mask));
      words.push_back(LLVM::LoadOp::create(b, b.loc, b.getI32Type(), address));
    }
  return words;
}

/// Loads the left factor of the step at k, for the 16 rows that begin at row 16 · piece.
Sm80Tiles::Factor Sm80Gemm::rowsFactor(Value stage, int64_t piece, int64_t k) {
  const GpuSide &side = plan.lhs;
  if (side.alongK)
    return b.toFactor(b.loadMatrices(
        shiftSwizzled(b, side.rowBytes, stage, rowLane, 16 * piece, k * b.elementBytes()), false));
  if (isReadSingly(plan, side))
    return b.toFactor(loadNumbers(b, side, stage, rowLane, 16 * piece, k, true));
  return b.toFactor(b.loadMatrices(
      shiftSwizzled(b, side.rowBytes, stage, rowLane, k, 16 * piece * b.elementBytes()), true));
}

/// Loads the right factors of the step at k, for the eight columns that begin at column 16 · piece,
/// and for the next eight columns.
std::array<Sm80Tiles::Factor, 2> Sm80Gemm::colsFactors(Value stage, int64_t piece, int64_t k) {
  const GpuSide &side = plan.rhs;
  Value tile = b.shiftBytes(stage, side.offset);
  if (isReadSingly(plan, side))
    return {b.toFactor(loadNumbers(b, side, tile, colLane, 16 * piece, k, false)),
            b.toFactor(loadNumbers(b, side, tile, colLane, 16 * piece + 8, k, false))};
  Value place =
      side.alongK
          ? shiftSwizzled(b, side.rowBytes, tile, colLane, 16 * piece, k * b.elementBytes())
          : shiftSwizzled(b, side.rowBytes, tile, colLane, k, 16 * piece * b.elementBytes());
  SmallVector<Value> words = b.loadMatrices(place, !side.alongK);
  return {b.toFactor(ArrayRef(words).take_front(2)), b.toFactor(ArrayRef(words).drop_front(2))};
}

Fragment Sm80Gemm::multiply(Fragment sums, Value stage) {
  int64_t rowPieces = config.warpRows / 16, perRow = config.warpCols / 8;
  for (int64_t k = 0; k < config.blockK; k += b.stepOfK()) {
    SmallVector<Sm80Tiles::Factor> rows;
    for (int64_t t = 0; t < rowPieces; ++t)
      rows.push_back(rowsFactor(stage, t, k));
    for (int64_t n = 0; n < perRow; n += 2) {
      std::array<Sm80Tiles::Factor, 2> cols = colsFactors(stage, n / 2, k);
      for (int64_t half : {0, 1})
        for (int64_t t = 0; t < rowPieces; ++t)
          b.multiplyAdd(MutableArrayRef(sums.registers).slice((t * perRow + n + half) * 4, 4),
                        rows[t], cols[half]);
    }
  }
  return sums;
}

void Sm80Gemm::fetch(Value number, Value stage) {
  b.when(b.isLess(number, kCount), [&] {
    Value target = stageAt(stage), kBlock = b.add(kFirst, number);
    lhs->fetch(b.shiftBytes(target, plan.lhs.offset), kBlock);
    rhs->fetch(b.shiftBytes(target, plan.rhs.offset), kBlock);
  });
  b.commit();
}

/// Returns the byte offset of the stage that follows the stage at offset `stage`.
Value Sm80Gemm::next(Value stage) {
  Value after = b.add(stage, plan.stageBytes());
  return b.select(b.isEqual(after, config.stages * plan.stageBytes()), b.i32(0), after);
}

Fragment Sm80Gemm::runLoop() {
  int64_t ahead = config.stages - 1;
  for (int64_t i = 0; i < ahead; ++i)
    fetch(b.i32(i), b.i32(i * plan.stageBytes()));
  SmallVector<Value> state = b.fill(layout, b.number(0)).registers;
  state.append({b.i32(0), b.i32(ahead * plan.stageBytes())});
  state = b.loop(b.i32(0), kCount, 1, state, [&](Value number, ValueRange carried) {
    Fragment sums{layout, llvm::to_vector(carried.drop_back(2))};
    Value reads = carried.end()[-2], writes = carried.back();
    b.waitForCopies(ahead - 1);
    b.barrier();
    fetch(b.add(number, ahead), writes);
    sums = multiply(std::move(sums), stageAt(reads));
    SmallVector<Value> after = sums.registers;
    after.append({next(reads), next(writes)});
    return after;
  });
  state.truncate(state.size() - 2);
  return {layout, state};
}

void Sm80Gemm::stageSums(const Fragment &sums) {
  b.waitForCopies(0);
  b.barrier();
  Value row = b.add(warpRow, b.rowOfLane()), col = b.add(warpCol, b.colOfLane());
  Value own = b.shiftBytes(b.sharedAt(0), b.add(b.mul(row, plan.sumsPitch()), b.mul(col, 4)));
  for (int64_t i = 0; i < layout.numRegisters(); i += 2) {
    auto [r, c] = layout.place(i);
    Value place = b.shiftBytes(own, r * plan.sumsPitch() + c * 4);
    b.storePair(sums.registers[i], sums.registers[i + 1], {place, b.getF32Type(), b.constant(0)});
  }
  b.barrier();
}

void Sm80Gemm::finishStrips() {
  GpuEpilogue epilogue(b, problem, plan, kernel);
  StagedSums staged{b.sharedAt(0), plan.sumsPitch(), config.blockRows, config.blockCols,
                    outer,         firstRow,         firstCol};
  epilogue.forEachStrip(staged, b.thread(), b.threads,
                        [&](ArrayRef<Strip> strips, GpuEpilogue::SumsOf sums) {
                          epilogue.finishOrKeep(strips, split, sums);
                        });
}

void Sm80Gemm::emit() {
  placeBlock();
  placeParts();
  int64_t across = config.blockCols / config.warpCols;
  warpRow = b.mul(b.div(b.warp(), across), config.warpRows);
  warpCol = b.mul(b.rem(b.warp(), across), config.warpCols);
  lhs.emplace(loader(plan.lhs, problem.lhs, firstRow));
  rhs.emplace(loader(plan.rhs, problem.rhs, firstCol));
  placeLanes();
  stageSums(runLoop());
  finishStrips();
}

void gemm::lowerSm80Gemm(func::FuncOp kernel, const Problem &problem, const GpuPlan &plan,
                         ModuleOp entries, GpuKernel &info) {
  std::string symbol = kernel.getName().str();
  const GpuConfig &config = plan.config;
  Sm80Tiles b(kernel.getLoc(), kernel.getContext(), config.threads(), plan.element,
              plan.f32Products);
  info.scratchBytes = plan.scratchBytes();
  b.enter(entries, kernel, symbol, config.blocksPerSm, info.scratchBytes > 0);
  Sm80Gemm(b, problem, plan, kernel).emit();
  b.leave();
  GpuLaunch launch{symbol, plan.blocks(), config.threads(), plan.sharedBytes()};
  launch.cost = costOf(problem, plan);
  info.launches.push_back(std::move(launch));
  addPartSums(kernel, problem, plan, entries, info);
}
