//===- Sm90Gemm.cpp - Contractions by wgmma ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A block per multiprocessor goes through tiles of the result. One lane of the first warpgroup
// produces, two warpgroups of 64 rows each consume; stages go round from one tile to the next:
//
//   producer                                  consumers
//   for each tile, for each tile of k         for each tile
//     wait until the stage is empty             for each tile of k
//     expect its bytes                            wait until the stage is full
//     copy both tensors' boxes to it              sums += its products, four of k = 16
//                                                 the stage before is empty
//                                               32 columns at a time: sums to shared memory,
//                                                 strips of the result
//
// A tile in shared memory is made of panels with rows of 128 bytes, as Sm90Builder.h
// has them: 64 of k for each row of the result, or 64 rows of the result for each of k.
//
//===----------------------------------------------------------------------===//

#include "GpuGemmEpilogue.h"
#include "GpuRows.h"
#include "fsdp/Codegen/Gpu/Sm90Builder.h"
#include "fsdp/Codegen/Tile/Fragment.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;
using namespace mlir::fsdp::tile;

static constexpr int64_t groupThreads = Sm90Builder::groupThreads, consumers = 2, threads = (consumers + 1) * groupThreads;
static constexpr int64_t panelBytes = Sm90Builder::panelBytes, panel = Sm90Builder::panelCols;
static constexpr int64_t producerRegisters = 40, consumerRegisters = 232;
/// Of the columns that go through shared memory at a time, what lies between their rows.
static constexpr int64_t chunkCols = groupCols, chunkPitch = chunkCols * 4 + 32, chunkBytes = panel * chunkPitch;
static constexpr int64_t stripsTogether = 4;

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// Of a factor whose tile is of `width` rows (columns) of the result.
static std::optional<GpuTensorMap> makeTensorMap(const Problem &problem, const GpuPlan &plan, const Operand &operand, const GpuSide &side) {
  int inner = side.digits.back(), first = side.alongK ? plan.kInner : inner, second = side.alongK ? inner : plan.kInner;
  bool flat = side.digits.size() == 1 || problem.digits[inner].size % side.width == 0;
  if (!side.async || side.unit * 2 != 16 || !flat)
    return std::nullopt;
  GpuTensorMap map{operand.access.binding, operand.access.offset * 2, plan.element.isBF16(), {}, {}, {}};
  map.sizes = {problem.digits[first].size, problem.digits[second].size};
  map.strides = {operand.strides[second] * 2};
  map.box = {panel, side.alongK ? side.width : plan.config.blockK};
  for (auto [digit, stride] : llvm::enumerate(operand.strides)) {
    if (static_cast<int>(digit) == first || static_cast<int>(digit) == second || stride == 0)
      continue;
    map.sizes.push_back(problem.digits[digit].size);
    map.strides.push_back(stride * 2);
    map.box.push_back(1);
  }
  bool fits = map.sizes.size() <= 5 && llvm::all_of(map.strides, [](int64_t stride) { return stride > 0 && stride < INT64_C(1) << 40; });
  return fits ? std::optional(map) : std::nullopt;
}

std::optional<std::array<GpuTensorMap, 2>> gemm::makeTensorMaps(const Problem &problem, const GpuPlan &plan) {
  if (!plan.config.warpgroups || plan.element.isF32() || plan.splits != 1)
    return std::nullopt;
  auto lhs = makeTensorMap(problem, plan, problem.lhs, plan.lhs), rhs = makeTensorMap(problem, plan, problem.rhs, plan.rhs);
  if (!lhs || !rhs)
    return std::nullopt;
  return std::array{*lhs, *rhs};
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

namespace {
class Sm90Gemm {
public:
  Sm90Gemm(Sm90Builder &b, const Problem &problem, const GpuPlan &plan, func::FuncOp kernel, int64_t blocks)
      : b(b), problem(problem), plan(plan), config(plan.config), kernel(kernel), blocks(blocks) {}
  void emit();

private:
  struct Stage {
    Value begin, full, empty, parity;
  };
  void initBarriers();
  Stage stageOf(Value number);
  void forEachTile(function_ref<void(Value first)> body);
  void produce();
  void copySide(const GpuSide &side, const Operand &operand, Value map, Value target, const Stage &stage, Position position);
  void consume();
  SmallVector<Value> multiply(ArrayRef<Value> sums, const Stage &stage);
  void finish(ArrayRef<Value> sums);
  void finishChunk(int64_t firstOfChunk, Value chunk);

  Sm90Builder &b;
  const Problem &problem;
  const GpuPlan &plan;
  const GpuConfig &config;
  func::FuncOp kernel;
  const int64_t blocks;
  Value group, ownThread, outer, firstRow, firstCol;
};
} // namespace

static int64_t barriersAt(const GpuPlan &plan) { return plan.config.stages * plan.stageBytes() + consumers * chunkBytes; }

void Sm90Gemm::initBarriers() {
  b.when(b.isEqual(b.thread(), 0), [&] {
    for (int64_t i = 0; i < config.stages; ++i) {
      b.initBarrier(b.sharedAt(barriersAt(plan) + 8 * i), 1);
      b.initBarrier(b.sharedAt(barriersAt(plan) + 8 * (config.stages + i)), consumers * groupThreads / 32);
    }
    b.fenceBarriers();
  });
  b.barrier();
}

/// Of the number-th tile of k that the block meets.
Sm90Gemm::Stage Sm90Gemm::stageOf(Value number) {
  Value index = b.rem(number, config.stages), barrier = b.shiftBytes(b.sharedAt(barriersAt(plan)), b.mul(index, 8));
  return {b.shiftBytes(b.sharedAt(0), b.mul(index, plan.stageBytes())), barrier, b.shiftBytes(barrier, 8 * config.stages),
          b.rem(b.div(number, config.stages), 2)};
}

/// `first`: how many tiles of k the block has met before.
void Sm90Gemm::forEachTile(function_ref<void(Value)> body) {
  int64_t tiles = plan.rowTiles() * plan.colTiles();
  b.loop(b.block(), b.i32(plan.blocks()), blocks, [&](Value number) {
    outer = b.div(number, tiles);
    std::tie(firstRow, firstCol) = emitTile(b, plan, b.rem(number, tiles));
    body(b.mul(b.div(number, blocks), plan.kBlocks));
  });
}

//===----------------------------------------------------------------------===//
// Producer
//===----------------------------------------------------------------------===//

void Sm90Gemm::copySide(const GpuSide &side, const Operand &operand, Value map, Value target, const Stage &stage, Position position) {
  int inner = side.digits.back(), first = side.alongK ? plan.kInner : inner, second = side.alongK ? inner : plan.kInner;
  auto at = [&](int digit) { return position[digit] ? position[digit] : b.i32(0); };
  int64_t panels = side.alongK ? 1 : side.width / panel;
  for (int64_t i = 0; i < panels; ++i) {
    SmallVector<Value> coordinates = {b.add(at(first), i * panel), at(second)};
    for (auto [digit, stride] : llvm::enumerate(operand.strides))
      if (static_cast<int>(digit) != first && static_cast<int>(digit) != second && stride != 0)
        coordinates.push_back(at(digit));
    b.copyBox(b.shiftBytes(target, side.offset + i * panelBytes * config.blockK), map, coordinates, stage.full);
  }
}

void Sm90Gemm::produce() {
  int64_t innerBlocks = llvm::divideCeil(plan.k, config.blockK);
  forEachTile([&](Value first) {
    Position corner(problem.digits.size());
    setDigits(b, problem, corner, outer, plan.outer);
    setDigits(b, problem, corner, firstRow, plan.lhs.digits);
    setDigits(b, problem, corner, firstCol, plan.rhs.digits);
    b.loop(b.i32(0), b.i32(plan.kBlocks), 1, [&](Value kBlock) {
      Stage stage = stageOf(b.add(first, kBlock));
      b.wait(stage.empty, b.sub(b.i32(1), stage.parity));
      b.expect(stage.full, plan.stageBytes());
      Position position = corner;
      position[plan.kInner] = b.mul(b.rem(kBlock, innerBlocks), config.blockK);
      if (!plan.kOuter.empty())
        setDigits(b, problem, position, b.div(kBlock, innerBlocks), plan.kOuter);
      copySide(plan.lhs, problem.lhs, b.tensorMap(0), stage.begin, stage, position);
      copySide(plan.rhs, problem.rhs, b.tensorMap(1), stage.begin, stage, position);
    });
  });
}

//===----------------------------------------------------------------------===//
// Consumers
//===----------------------------------------------------------------------===//

SmallVector<Value> Sm90Gemm::multiply(ArrayRef<Value> sums, const Stage &stage) {
  // 64 rows are 64 rows of 128 bytes in one panel, or one panel of 64 k.
  auto factor = [&](const GpuSide &side, Value place) {
    return side.alongK ? b.factorAlong(place, side.width, config.blockK) : b.factorAcross(place, config.blockK, config.blockK);
  };
  SharedFactor lhs = factor(plan.lhs, b.shiftBytes(stage.begin, b.mul(group, panel * panelBytes)));
  SharedFactor rhs = factor(plan.rhs, b.shiftBytes(stage.begin, plan.rhs.offset));
  return b.multiply(sums, lhs, rhs, config.blockCols, plan.element);
}

void Sm90Gemm::finishChunk(int64_t firstOfChunk, Value chunk) {
  GpuEpilogue epilogue(b, problem, plan, kernel);
  int64_t perRow = chunkCols / plan.storeCols, total = panel * perRow, together = std::clamp<int64_t>(total / groupThreads, 1, stripsTogether);
  bool wholeRows = plan.lhs.size % config.blockRows == 0, wholeCols = plan.rhs.size % config.blockCols == 0;
  Value rowOfGroup = b.add(firstRow, b.mul(group, panel));
  b.loop(ownThread, b.i32(total), together * groupThreads, [&](Value first) {
    SmallVector<Strip> strips;
    SmallVector<Value> places;
    for (int64_t i = 0; i < together; ++i) {
      Value number = b.add(first, i * groupThreads), row = b.div(number, perRow), col = b.mul(b.rem(number, perRow), plan.storeCols);
      places.push_back(b.shiftBytes(chunk, b.add(b.mul(row, chunkPitch), b.mul(col, 4))));
      Strip strip{outer, b.add(rowOfGroup, row), b.add(b.add(firstCol, firstOfChunk), col), Value()};
      if (!wholeRows)
        strip.exists = b.isLess(strip.row, b.i32(plan.lhs.size));
      if (!wholeCols) {
        Value inRow = b.isLess(strip.col, b.i32(plan.rhs.size));
        strip.exists = strip.exists ? b.both(strip.exists, inRow) : inRow;
      }
      strips.push_back(strip);
    }
    epilogue.finish(strips, [&](unsigned i) {
      return loadRow(b, {places[i], b.getF32Type(), b.constant(0)}, plan.storeCols, plan.storeCols);
    });
  });
}

void Sm90Gemm::finish(ArrayRef<Value> sums) {
  Layout layout = Layout::mmaSums(16, config.blockCols);
  Value chunk = b.shiftBytes(b.sharedAt(config.stages * plan.stageBytes()), b.mul(group, chunkBytes));
  Value row = b.add(b.mul(b.div(ownThread, 32), 16), b.div(b.lane(), 4)), col = b.mul(b.rem(b.lane(), 4), 2);
  Value own = b.shiftBytes(chunk, b.add(b.mul(row, chunkPitch), b.mul(col, 4))), barrier = b.add(group, 1);
  for (int64_t from = 0; from < config.blockCols; from += chunkCols) {
    b.syncNamed(barrier, groupThreads);
    for (int64_t i = from / 8 * 4; i < (from + chunkCols) / 8 * 4; i += 2) {
      auto [r, c] = layout.place(i);
      b.storePair(sums[i], sums[i + 1], {b.shiftBytes(own, r * chunkPitch + (c - from) * 4), b.getF32Type(), b.constant(0)});
    }
    b.syncNamed(barrier, groupThreads);
    finishChunk(from, chunk);
  }
}

void Sm90Gemm::consume() {
  Value isFirstLane = b.isEqual(b.lane(), 0);
  auto release = [&](const Stage &stage) { b.when(isFirstLane, [&] { b.arrive(stage.empty); }); };
  SmallVector<Value> zeros(config.blockCols / 2, b.number(0));
  forEachTile([&](Value first) {
    SmallVector<Value> sums = b.loop(b.i32(0), b.i32(plan.kBlocks), 1, zeros, [&](Value kBlock, ValueRange carried) {
      Value number = b.add(first, kBlock);
      Stage stage = stageOf(number);
      b.wait(stage.full, stage.parity);
      SmallVector<Value> next = multiply(llvm::to_vector(carried), stage);
      b.waitForSums({}, 1);
      b.when(b.isLess(b.i32(0), kBlock), [&] { release(stageOf(b.sub(number, b.i32(1)))); });
      return next;
    });
    sums = b.waitForSums(sums);
    release(stageOf(b.add(first, plan.kBlocks - 1)));
    finish(sums);
  });
}

void Sm90Gemm::emit() {
  Value number = b.warpgroup();
  ownThread = b.threadOfGroup();
  initBarriers();
  b.when(
      b.isEqual(number, 0),
      [&] {
        b.giveRegisters(producerRegisters);
        b.when(b.isEqual(b.thread(), 0), [&] { produce(); });
      },
      [&] {
        b.takeRegisters(consumerRegisters);
        group = b.sub(number, b.i32(1));
        consume();
      });
}

void gemm::lowerSm90Gemm(func::FuncOp kernel, const Problem &problem, const GpuPlan &plan, std::array<GpuTensorMap, 2> maps, ModuleOp entries,
                         GpuKernel &info) {
  Sm90Builder b(kernel.getLoc(), kernel.getContext(), threads);
  int64_t blocks = std::min(plan.blocks(), plan.multiprocessors);
  std::string symbol = kernel.getName().str();
  b.enter(entries, kernel, symbol, 1, /*scratch=*/false, maps.size());
  Sm90Gemm(b, problem, plan, kernel, blocks).emit();
  b.leave();
  GpuLaunch launch{symbol, blocks, threads, plan.sharedBytes(), {}};
  launch.maps.assign(maps.begin(), maps.end());
  info.launches.push_back(launch);
}
