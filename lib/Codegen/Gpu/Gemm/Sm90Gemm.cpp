//===- Sm90Gemm.cpp - Contractions with wgmma -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each multiprocessor runs one block, which computes several tiles of the result one after another.
// One lane of the first warpgroup is the producer. Two warpgroups of 64 rows each are consumers.
// The stages (buffers) form a ring, which continues from tile to tile:
//
//   producer                                  consumers
//   for each tile, for each tile of k         for each tile
//     wait until the stage is empty             for each tile of k
//     expect its bytes                            wait until the stage is full
//     copy the boxes of both factors              sums += products, four steps of k
//                                                 release the previous stage;
//     copy boxes of the epilogue                epilogue and stores;
//
// The epilogue reads and stores boxes if tensor maps can copy its tensors (Sm90GemmBoxes.cpp).
// Otherwise, for each 32 columns, it writes sums to shared memory and computes strips of the
// result.
//
// If k is split, each tile of the result is processed once for each part, by the same or by other
// blocks (PartOrder.h). The sums of a part are stored in scratch. A second launch adds the sums of
// the parts and applies the epilogue.
//
// The two blocks of a cluster compute adjacent tiles of a column of tiles. Both tiles need the same
// tile of rhs. Each block copies half of the tile of rhs to both blocks, after the consumers of
// both blocks have released the stage.
//
// A tile in shared memory consists of panels with rows of 128 bytes (see Sm90Builder.h). Such a row
// holds 64 values of k (of f32: 32) for one row (or column) of the result, or 64 rows (or columns)
// for one k. f32 factors are read along k, from the factors or from copies in scratch
// (GpuGemmPacks.cpp), and the tensor maps round them to TF32. For exact products, three other warps
// of the first warpgroup split each tile of rhs into two parts (SplitFactors.cpp).
//
//===----------------------------------------------------------------------===//

#include "Codegen/Kernel/Fragment.h"
#include "FactorSums.h"
#include "Sm90GemmBoxes.h"
#include "SplitFactors.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;
using namespace mlir::fsdp::tile;

static constexpr int64_t groupThreads = Sm90Builder::groupThreads, consumers = 2,
                         threads = (consumers + 1) * groupThreads;
static constexpr int64_t panelBytes = Sm90Builder::panelBytes, panel = Sm90Builder::panelCols;
static constexpr int64_t producerRegisters = 40, consumerRegisters = 232;

static int64_t barriersAt(const GpuPlan &plan) {
  return plan.config.stages * plan.stageBytes() + consumers * groupBytes;
}

namespace {
class Sm90Gemm {
public:
  Sm90Gemm(Sm90Builder &b, const Problem &problem, const GpuPlan &plan, func::FuncOp kernel,
           int64_t blocks, std::optional<EpilogueBoxes> boxes)
      : b(b), problem(problem), plan(plan), config(plan.config), kernel(kernel), blocks(blocks),
        barriers(b.sharedAt(barriersAt(plan))) {
    if (boxes)
      boxEpilogue.emplace(b, problem, plan, kernel, std::move(*boxes));
    if (plan.sums)
      factorSums.emplace(b, problem, plan, kernel);
    if (plan.splitsTiles())
      splitFactors.emplace(b, plan);
  }
  void emit();

private:
  using Stage = GemmStage;
  void initBarriers();
  Stage stageOf(Value number);
  void forEachTile(function_ref<void(Value first)> body);
  void forEachUnevenPart(function_ref<void(Value first)> body);
  void placeTile(Value number);
  void produce();
  void release(const Stage &stage);
  void splitTiles();
  void copySide(const GpuSide &side, const Operand &operand, int64_t map, int64_t parts,
                const Stage &stage, Position position);
  void consume();
  SmallVector<Value> multiply(ArrayRef<Value> sums, const Stage &stage);
  SmallVector<Value> multiplyParts(ArrayRef<Value> sums, const Stage &stage,
                                   function_ref<void()> releasePrevious);
  SmallVector<Value> addStage(ValueRange carried, Value first, Value kBlock);
  Value ownChunk();
  std::pair<Value, Value> placeOfLane();
  BoxEpilogue::Place placeOfGroup();
  FactorSums::Tile tileOfSums();
  Value sharedOfSums() {
    return b.sharedAt(barriersAt(plan) + 2 * Sm90Builder::barrierBytes * config.stages);
  }
  void finishInStrips(ArrayRef<Value> sums);

  Sm90Builder &b;
  const Problem &problem;
  const GpuPlan &plan;
  const GpuConfig &config;
  func::FuncOp kernel;
  const int64_t blocks;
  std::optional<BoxEpilogue> boxEpilogue;
  std::optional<FactorSums> factorSums;
  std::optional<SplitFactors> splitFactors;
  Value barriers; ///< address of the first barrier in memory
  Value inCluster, leaves, group, ownThread, outer, split, firstRow, firstCol;
  Value kFirst, kCount; ///< first tile of k, and number of tiles of k
};
} // namespace

void Sm90Gemm::initBarriers() {
  b.when(b.isEqual(b.thread(), 0), [&] {
    for (int64_t i = 0; i < config.stages; ++i) {
      b.initBarrier(b.shiftBytes(barriers, 8 * i), 1);
      b.initBarrier(b.shiftBytes(barriers, 8 * (config.stages + i)),
                    config.cluster * consumers * groupThreads / 32);
      if (splitFactors)
        b.initBarrier(b.shiftBytes(barriers, 8 * (2 * config.stages + i)), splittingWarps);
    }
    b.fenceBarriers();
  });
  config.cluster > 1 ? b.clusterBarrier() : b.barrier();
}

/// Returns the stage for the tile of k with the number `number`, counted over all tiles of the
/// result that this block processes.
Sm90Gemm::Stage Sm90Gemm::stageOf(Value number) {
  Value index = b.rem(number, config.stages), barrier = b.shiftBytes(barriers, b.mul(index, 8));
  return {b.shiftBytes(b.sharedAt(0), b.mul(index, plan.stageBytes())), barrier,
          b.shiftBytes(barrier, 8 * config.stages), b.rem(b.div(number, config.stages), 2),
          splitFactors ? b.shiftBytes(barrier, 16 * config.stages) : Value()};
}

void Sm90Gemm::placeTile(Value number) {
  std::tie(firstRow, firstCol) = emitTile(b, plan, number);
  if (config.cluster > 1)
    firstRow = b.add(firstRow, b.mul(inCluster, config.blockRows));
}

void Sm90Gemm::forEachUnevenPart(function_ref<void(Value)> body) {
  int64_t tiles = plan.rowTiles() * plan.colTiles();
  Value number = b.div(b.block(), config.cluster);
  b.loop(plan.uneven->firstTile(b, number), plan.uneven->endTile(b, number), 1, [&](Value tile) {
    PartOrder::Turn<Value> turn = plan.uneven->turnAt(b, number, tile);
    split = turn.part;
    kFirst = turn.firstStep;
    kCount = turn.steps;
    outer = b.div(tile, tiles);
    placeTile(b.rem(tile, tiles));
    body(turn.before);
  });
}

/// Emits body(first) for each tile of the result, or for each part of a tile. `first` is the number
/// of stages that were used before.
void Sm90Gemm::forEachTile(function_ref<void(Value)> body) {
  if (plan.uneven)
    return forEachUnevenPart(body);
  int64_t tiles = plan.rowTiles() * plan.colTiles(), atATime = blocks / config.cluster;
  b.loop(b.div(b.block(), config.cluster), b.i32(plan.tiles()), atATime, [&](Value number) {
    Value rest = b.div(number, tiles);
    split = b.rem(rest, plan.splits);
    outer = b.div(rest, plan.splits);
    placeTile(b.rem(number, tiles));
    kFirst = b.mul(split, plan.partBlocks());
    kCount = b.i32(plan.partBlocks());
    int64_t stages = plan.partBlocks() + (boxEpilogue ? boxEpilogue->stages() : 0);
    body(b.mul(b.div(number, atATime), stages));
  });
}

/// Copies the tile of one factor to a stage. If `parts` blocks of a cluster share the tile, each of
/// them copies 1/parts of the tile to all blocks of the cluster.
void Sm90Gemm::copySide(const GpuSide &side, const Operand &operand, int64_t map, int64_t parts,
                        const Stage &stage, Position position) {
  int inner = side.digits.back(), first = side.alongK ? plan.kInner : inner,
      second = side.alongK ? inner : plan.kInner;
  int64_t boxes = side.alongK ? 1 : side.width / panel / parts,
          boxBytes = panelBytes * (side.alongK ? side.width / parts : config.blockK);
  int64_t boxCols = side.alongK ? side.width / parts : panel;
  for (int64_t i = 0; i < boxes; ++i) {
    Value number = parts == 1 ? b.i32(i) : b.add(b.mul(inCluster, boxes), i),
          shift = b.mul(number, boxCols);
    SmallVector<Value> coordinates = coordinatesOf(b, operand, first, second, position);
    if (splitFactors) // in the map, f32 elements count twice
      coordinates[0] = b.mul(coordinates[0], 2);
    Value &moved = coordinates[side.alongK ? 1 : 0];
    moved = b.add(moved, shift);
    Value target = b.shiftBytes(b.shiftBytes(stage.begin, side.offset), b.mul(number, boxBytes));
    if (parts == 1)
      b.copyBox(target, b.tensorMap(map), coordinates, stage.full);
    else
      b.copyBoxToCluster(target, b.tensorMap(map), coordinates, stage.full, parts);
  }
}

void Sm90Gemm::produce() {
  int64_t innerBlocks = llvm::divideCeil(plan.k, config.blockK);
  forEachTile([&](Value first) {
    Position corner(problem.digits.size());
    setDigits(b, problem, corner, outer, plan.outer);
    setDigits(b, problem, corner, firstRow, plan.lhs.digits);
    setDigits(b, problem, corner, firstCol, plan.rhs.digits);
    b.loop(b.i32(0), kCount, 1, [&](Value number) {
      Stage stage = stageOf(b.add(first, number));
      Value kBlock = b.add(kFirst, number);
      b.wait(stage.empty, b.sub(b.i32(1), stage.parity));
      b.expect(stage.full, plan.copiedBytes());
      Position position = corner;
      position[plan.kInner] = b.mul(b.rem(kBlock, innerBlocks), config.blockK);
      if (!plan.kOuter.empty())
        setDigits(b, problem, position, b.div(kBlock, innerBlocks), plan.kOuter);
      copySide(plan.lhs, plan.lhsOf(problem), 0, 1, stage, position);
      copySide(plan.rhs, plan.rhsOf(problem), 1, config.cluster, stage, position);
    });
    if (boxEpilogue)
      boxEpilogue->produce(
          corner, [&](int64_t number) { return stageOf(b.add(b.add(first, kCount), number)); });
  });
}

/// Splits the tiles of rhs. Stages with boxes of the epilogue are passed on, so that all barriers
/// have the same parity.
void Sm90Gemm::splitTiles() {
  int64_t boxStages = boxEpilogue ? boxEpilogue->stages() : 0;
  forEachTile([&](Value first) {
    b.loop(b.i32(0), b.add(kCount, boxStages), 1, [&](Value number) {
      Stage stage = stageOf(b.add(first, number));
      b.wait(stage.full, stage.parity);
      b.when(b.isLess(number, kCount), [&] { splitFactors->splitRhs(stage.begin); });
      b.fenceAsync();
      b.syncWarp();
      b.when(b.isEqual(b.lane(), 0), [&] { b.arrive(stage.split); });
    });
  });
}

SmallVector<Value> Sm90Gemm::multiply(ArrayRef<Value> sums, const Stage &stage) {
  // A warpgroup multiplies 64 rows of lhs. If lhs.alongK is true, these are 64 rows of a panel.
  // Otherwise, the 64 rows are columns of a panel, and a row of the panel has one value of k.
  int64_t elementBytes = plan.element.isF32() ? 4 : 2;
  auto factor = [&](const GpuSide &side, Value place) {
    return side.alongK ? b.factorAlong(place, side.width, config.blockK, elementBytes)
                       : b.factorAcross(place, config.blockK, config.blockK);
  };
  SharedFactor lhs = factor(plan.lhs, b.shiftBytes(stage.begin, b.mul(group, panel * panelBytes)));
  SharedFactor rhs = factor(plan.rhs, b.shiftBytes(stage.begin, plan.rhs.offset));
  return b.multiply(sums, lhs, rhs, config.blockCols, plan.element);
}

/// Starts the exact products of a stage. Calls `releasePrevious` when those of the previous stage
/// have ended.
SmallVector<Value> Sm90Gemm::multiplyParts(ArrayRef<Value> sums, const Stage &stage,
                                           function_ref<void()> releasePrevious) {
  Value rows = b.shiftBytes(stage.begin, b.mul(group, panel * panelBytes));
  SmallVector<Value> words = splitFactors->loadLhs(rows, ownThread);
  b.wait(stage.split, stage.parity);
  return splitFactors->multiply(sums, words, stage.begin, releasePrevious);
}

/// Returns the address of the shared memory in which this warpgroup writes its sums.
Value Sm90Gemm::ownChunk() {
  return b.shiftBytes(b.sharedAt(config.stages * plan.stageBytes()), b.mul(group, groupBytes));
}

/// Returns the first row and column of a lane's elements within the warpgroup's tile.
std::pair<Value, Value> Sm90Gemm::placeOfLane() {
  return {b.add(b.mul(b.div(ownThread, 32), 16), b.div(b.lane(), 4)), b.mul(b.rem(b.lane(), 4), 2)};
}

/// Applies the epilogue to the tile and stores the results in strips.
void Sm90Gemm::finishInStrips(ArrayRef<Value> sums) {
  GpuEpilogue epilogue(b, problem, plan, kernel);
  Layout layout = Layout::mmaSums(16, config.blockCols);
  auto [row, col] = placeOfLane();
  Value rowOfGroup = b.add(firstRow, b.mul(group, panel));
  Value chunk = ownChunk(), own = b.shiftBytes(chunk, b.add(b.mul(row, groupPitch), b.mul(col, 4))),
        barrier = b.add(group, 1);
  for (int64_t from = 0; from < config.blockCols; from += groupCols) {
    b.syncNamed(barrier, groupThreads);
    for (int64_t i = from / 8 * 4; i < (from + groupCols) / 8 * 4; i += 2) {
      auto [r, c] = layout.place(i);
      b.storePair(
          sums[i], sums[i + 1],
          {b.shiftBytes(own, r * groupPitch + (c - from) * 4), b.getF32Type(), b.constant(0)});
    }
    b.syncNamed(barrier, groupThreads);
    epilogue.forEachStrip(
        {chunk, groupPitch, panel, groupCols, outer, rowOfGroup, b.add(firstCol, from)}, ownThread,
        groupThreads, [&](ArrayRef<Strip> strips, GpuEpilogue::SumsOf sums) {
          epilogue.finishOrKeep(strips, split, sums);
        });
  }
}

BoxEpilogue::Place Sm90Gemm::placeOfGroup() {
  return {outer, b.add(firstRow, b.mul(group, panel)), firstCol, group, ownThread, ownChunk()};
}

FactorSums::Tile Sm90Gemm::tileOfSums() {
  return {b.add(b.mul(group, groupThreads), ownThread), firstRow, firstCol, split};
}

/// Releases a stage. In each warp, lane i signals block i of the cluster.
void Sm90Gemm::release(const Stage &stage) {
  if (splitFactors) { // all lanes have read lhs
    b.fenceAsync();
    b.syncWarp();
  }
  b.when(b.isLower(b.lane(), config.cluster),
         [&] { config.cluster > 1 ? b.arriveIn(stage.empty, leaves) : b.arrive(stage.empty); });
}

/// Adds the products of tile `kBlock` of k, and releases the previous stage. `carried` are the sums
/// of products, then those of a factor.
SmallVector<Value> Sm90Gemm::addStage(ValueRange carried, Value first, Value kBlock) {
  Value number = b.add(first, kBlock);
  Stage stage = stageOf(number);
  auto releasePrevious = [&] {
    b.when(b.isLess(b.i32(0), kBlock), [&] { release(stageOf(b.sub(number, b.i32(1)))); });
  };
  b.wait(stage.full, stage.parity);
  SmallVector<Value> sums(carried.take_front(config.blockCols / 2));
  if (splitFactors)
    return multiplyParts(sums, stage, releasePrevious);
  SmallVector<Value> next = multiply(sums, stage);
  if (factorSums)
    llvm::append_range(next, factorSums->add(tileOfSums(), b.add(kFirst, kBlock), stage.begin,
                                             carried.drop_front(sums.size())));
  b.waitForSums({}, 1);
  releasePrevious();
  return next;
}

void Sm90Gemm::consume() {
  // Hide from ptxas that the address of the barriers is a constant. Otherwise ptxas copies each
  // matrix descriptor before it is used; see Sm90Consumer.cpp.
  Value place = b.uniform(LLVM::PtrToIntOp::create(b, b.loc, b.getI32Type(), barriers));
  barriers = LLVM::IntToPtrOp::create(b, b.loc, barriers.getType(), place);
  // `leaves` is the number of the block that a lane signals. It must be valid in all lanes, because
  // mapa may also run in lanes that signal no block.
  leaves = b.rem(b.lane(), config.cluster);
  SmallVector<Value> zeros(config.blockCols / 2, b.number(0));
  forEachTile([&](Value first) {
    BoxEpilogue::Inputs inputs;
    if (boxEpilogue)
      inputs = boxEpilogue->begin(placeOfGroup());
    SmallVector<Value> zerosOfAll = zeros;
    if (factorSums)
      llvm::append_range(zerosOfAll, factorSums->begin());
    SmallVector<Value> sums =
        b.loop(b.i32(0), kCount, 1, zerosOfAll,
               [&](Value kBlock, ValueRange carried) { return addStage(carried, first, kBlock); });
    SmallVector<Value> factorTotals(llvm::drop_begin(sums, zeros.size()));
    sums.truncate(zeros.size());
    sums = b.waitForSums(sums);
    release(stageOf(b.add(first, b.sub(kCount, b.i32(1)))));
    if (factorSums)
      factorSums->finish(tileOfSums(), factorTotals, sharedOfSums());
    if (!boxEpilogue)
      return finishInStrips(sums);
    boxEpilogue->finish(
        placeOfGroup(), sums, std::move(inputs),
        [&](int64_t number) { return stageOf(b.add(b.add(first, kCount), number)); },
        [&](const Stage &stage) { release(stage); });
  });
  if (boxEpilogue)
    boxEpilogue->end(ownThread);
}

void Sm90Gemm::emit() {
  Value number = b.warpgroup();
  ownThread = b.threadOfGroup();
  if (config.cluster > 1)
    inCluster = b.blockInCluster();
  initBarriers();
  b.when(
      b.isEqual(number, 0),
      [&] {
        b.giveRegisters(producerRegisters);
        b.when(b.isEqual(b.thread(), 0), [&] { produce(); });
        if (splitFactors)
          b.when(b.isLess(b.i32(0), b.uniform(b.warp())), [&] { splitTiles(); });
      },
      [&] {
        b.takeRegisters(consumerRegisters);
        group = b.sub(number, b.i32(1));
        consume();
      });
  if (config.cluster > 1)
    b.clusterBarrier();
}

void gemm::lowerSm90Gemm(func::FuncOp kernel, const Problem &problem, const GpuPlan &plan,
                         std::array<GpuTensorMap, 2> maps, ModuleOp entries, GpuKernel &info) {
  Sm90Builder b(kernel.getLoc(), kernel.getContext(), threads);
  int64_t cluster = plan.config.cluster,
          blocks = std::min(plan.blocks(), plan.multiprocessors / cluster * cluster);
  std::string symbol = kernel.getName().str();
  GpuLaunch launch{symbol, blocks, threads, plan.sharedBytes()};
  launch.maps.assign(maps.begin(), maps.end());
  std::optional<EpilogueBoxes> boxes = makeEpilogueBoxes(problem, plan);
  if (boxes)
    for (const auto *tensors : {&boxes->loads, &boxes->stores})
      for (const EpilogueBox &box : *tensors)
        launch.maps.push_back(box.map);
  info.scratchBytes = plan.scratchBytes();
  addPacks(kernel, problem, plan, entries, info);
  b.enter(entries, kernel, symbol, 1, info.scratchBytes > 0, launch.maps.size(), cluster);
  Sm90Gemm(b, problem, plan, kernel, blocks, std::move(boxes)).emit();
  b.leave();
  launch.cluster = cluster;
  launch.cost = costOf(problem, plan);
  launch.copyThreads = groupThreads;
  info.launches.push_back(launch);
  addPartSums(kernel, problem, plan, entries, info);
}
