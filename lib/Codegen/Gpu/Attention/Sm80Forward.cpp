//===- Sm80Forward.cpp - Attention with mma.sync ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A block of threads computes a block of rows of one head, and a warp computes some of these rows.
// The comment of AttentionForward.cpp explains the computation of a row. K and V have two buffers
// each, so that copies overlap with products:
//
//   fetch Q, K[0]; fetch V[0];
//   for each block i of columns                unless it is entirely masked
//     wait for K[i]; barrier; fetch K[i + 1];
//     S = Q · Kᵀ, score_mod, mask; m, P, l as in AttentionForward.cpp;
//     wait for V[i]; barrier; fetch V[i + 1];
//     O = O · a + P · V;
//   O / l, lse;
//
// After the first barrier of an iteration, K[i] is visible to all warps. Moreover, all warps have
// read the other buffer, so K[i + 1] may overwrite it. The second barrier of an iteration does for
// V what the first barrier does for K. The number of block i is computed from the ranges of
// AttentionTiles, one iteration before the block is processed.
//
//===----------------------------------------------------------------------===//

#include "AttentionClocks.h"
#include "ForwardScores.h"
#include "Sm80Blocks.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

namespace {
class Sm80Forward {
public:
  Sm80Forward(Sm80Tiles &b, const Sm80Config &config, const Shape &shape, const QueryOrder &order,
              AttentionOp op, func::FuncOp kernel)
      : b(b), config(config), shape(shape), order(order), op(op), kernel(kernel),
        ranges(AttentionTiles(op).getKeyTiles(config.blockCols)),
        scoreLayout(Layout::mmaSums(config.warpRows(), config.blockCols)),
        outputLayout(Layout::mmaSums(config.warpRows(), Sm80Tiles::paddedCols(shape.valueDim))) {}
  void emit();

private:
  /// The values that the loop over blocks carries: first the sums of O, then the maximum and the
  /// sum of each row.
  struct State {
    Fragment o;
    ForwardScores::State rows;
    SmallVector<Value> flat() const;
  };
  bool wholeCols() const { return shape.cols % config.blockCols == 0; }
  void placeUnit();
  void placeTiles();
  void fetch(const SharedTile &tile, const GlobalRows &rows, Value turn);
  State unflatten(ValueRange values);
  State processBlock(Value number, State state);
  Fragment scoresOf(Value number, Value firstCol);
  void finish(State state);

  Sm80Tiles &b;
  const Sm80Config config;
  const Shape &shape;
  const QueryOrder order;
  AttentionOp op;
  func::FuncOp kernel;
  SmallVector<TileRange> ranges;
  Layout scoreLayout, outputLayout;

  Head head;
  Value firstRow; ///< first row of the block
  GlobalRows qRows, kRows, vRows;
  SharedTile qTile, kTile, vTile;
  std::optional<ForwardScores> scores;
  std::optional<BlockSequence> blocks;
};
} // namespace

/// Computes which rows of which head this block of threads processes.
void Sm80Forward::placeUnit() {
  auto [number, rowBlock] = order.tileAt(b, b.block(), b.i32(0));
  firstRow = b.mul(rowBlock, config.blockRows());
  Value own = b.rem(number, shape.heads);
  head = {b.to64(b.div(number, shape.heads)), b.to64(own), b.to64(b.div(own, shape.group))};
  auto slab = [&](Value tensor, Value ownHead) {
    return slabOf(b, headTensorOf(b, kernel, tensor), head.batch, ownHead);
  };
  qRows = slab(op.getQ(), head.head);
  kRows = slab(op.getK(), head.kvHead);
  vRows = slab(op.getV(), head.kvHead);
}

void Sm80Forward::placeTiles() {
  int64_t pitch = Sm80Tiles::pitchOf(b.element, shape.dim),
          valuePitch = Sm80Tiles::pitchOf(b.element, shape.valueDim);
  int64_t keys = config.blockRows() * pitch, values = keys + 2 * config.blockCols * pitch;
  qTile = {b.sharedAt(0), pitch};
  kTile = {b.sharedAt(keys), pitch};
  vTile = {b.sharedAt(values), valuePitch};
}

void Sm80Forward::fetch(const SharedTile &tile, const GlobalRows &rows, Value turn) {
  Value first = b.mul(blocks->at(turn), config.blockCols);
  b.copyAsync(stageOf(b, tile, config.blockCols, turn), rows, first, config.blockCols, wholeCols());
}

Fragment Sm80Forward::scoresOf(Value number, Value firstCol) {
  Fragment s =
      b.multiplyRows(b.fill(scoreLayout, b.number(0)), rowsOfWarp(b, qTile, config.warpRows()),
                     stageOf(b, kTile, config.blockCols, number), Sm80Tiles::paddedCols(shape.dim));
  bool always = scores->alwaysModifies();
  // If the last block has fewer columns than the others, LLVM computes values of its columns before
  // the products. Hiding the number of the column from LLVM prevents this. With masks that read
  // tensors, or with weight_mod, kernels take fewer registers if the number is not hidden.
  bool hides = !wholeCols() && !scores->mixes() && !readsTensors(op.getMaskMod());
  auto modify = [&](bool masked) {
    return scores->modify(s, hides ? b.opaque(firstCol) : firstCol, masked);
  };
  if (!scores->canBeMasked())
    return always ? modify(false) : s;
  Value free = blocks->isFree(b.div(firstCol, config.blockCols));
  SmallVector<Type> types(s.registers.size(), b.getF32Type());
  s.registers = b.choose(
      free, types, [&] { return always ? modify(false).registers : s.registers; },
      [&] { return modify(true).registers; });
  return s;
}

SmallVector<Value> Sm80Forward::State::flat() const {
  SmallVector<Value> all(o.registers);
  llvm::append_range(all, rows.max);
  llvm::append_range(all, rows.sum);
  return all;
}

Sm80Forward::State Sm80Forward::unflatten(ValueRange values) {
  int64_t count = outputLayout.numRegisters(), perLane = scoreLayout.rowsOfLane();
  return {
      {outputLayout, llvm::to_vector(values.take_front(count))},
      {llvm::to_vector(values.slice(count, perLane)), llvm::to_vector(values.take_back(perLane))}};
}

Sm80Forward::State Sm80Forward::processBlock(Value number, State state) {
  Value firstCol = b.mul(blocks->at(number), config.blockCols), next = b.add(number, 1);
  Value more = b.isLess(next, blocks->count);
  auto begin = [&](const SharedTile &tile, const GlobalRows &rows) {
    b.waitForCopies(1);
    b.barrier();
    b.when(more, [&] { fetch(tile, rows, next); });
    b.commit();
  };
  begin(kTile, kRows);
  Fragment s = scoresOf(number, firstCol);
  SmallVector<Value> correction;
  Fragment p = scores->softmax(s, state.rows, correction);
  for (auto [reg, x] : llvm::enumerate(state.o.registers))
    x = b.mulf(x, correction[outputLayout.rowOf(reg)]);
  p = scores->weigh(p, firstCol, scores->draw(firstCol));
  begin(vTile, vRows);
  state.o = b.multiplyAcross(state.o, p, stageOf(b, vTile, config.blockCols, number));
  return state;
}

/// Stores O and the log-sum-exps of those rows that exist in the tensors. For rows without keys, O
/// is 0 and the log-sum-exp is -inf.
void Sm80Forward::finish(State state) {
  SmallVector<Value> inverses = scores->finish(state.rows, b.destination(kernel, op.getLse()));
  HeadTensor out = headTensorOf(b, kernel, op.getO());
  if (!out.place.base)
    return;
  storeRows(b, state.o, scores->rowNumbers(), inverses, slabOf(b, out, head.batch, head.head));
}

void Sm80Forward::emit() {
  placeUnit();
  placeTiles();
  scores.emplace(b, op, shape, scoreLayout, head);
  scores->placeRows(b.add(b.add(firstRow, b.mul(b.warp(), config.warpRows())), b.rowOfLane()));
  Value zero = b.i32(0), last = b.min(b.add(firstRow, config.blockRows()), b.i32(shape.rows));
  blocks.emplace(b, ranges, scores->mask, head, firstRow, last);
  b.when(b.isLess(zero, blocks->count), [&] {
    b.copyAsync(qTile, qRows, firstRow, config.blockRows(), shape.rows % config.blockRows() == 0);
    fetch(kTile, kRows, zero);
    b.commit();
    fetch(vTile, vRows, zero);
    b.commit();
  });
  State first{b.fill(outputLayout, b.number(0)), scores->start()};
  finish(
      unflatten(b.loop(zero, blocks->count, 1, first.flat(), [&](Value number, ValueRange state) {
        return processBlock(number, unflatten(state)).flat();
      })));
}

LogicalResult attention::lowerSm80Forward(func::FuncOp kernel, AttentionOp op,
                                          const GpuTarget &target, ModuleOp entries,
                                          GpuKernel &info) {
  Shape shape = getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType());
  Type element = cast<RankedTensorType>(op.getQ().getType()).getElementType();
  std::optional<Sm80Config> config = chooseForward(shape, element, target);
  assert(config && "whyNoGpuKernel has said so");
  Sm80Work work = workOf(AttentionPass::Forward, AttentionTiles(op), workOfFunctions(op), *config,
                         shape, element, target);
  QueryOrder order = attention::chooseQueryOrder(work);
  Sm80Tiles b(op.getLoc(), op.getContext(), config->threads(), element, target.f32Products);
  b.enter(entries, kernel, info.info.name, config->blocksPerSm, /*scratch=*/false);
  Sm80Forward(b, *config, shape, order, op, kernel).emit();
  b.leave();
  GpuLaunch launch{info.info.name, order.tiles(), config->threads(),
                   forwardNeeds(*config, shape, element).sharedBytes};
  launch.cost = costOf(work, order);
  info.launches.push_back(std::move(launch));
  return success();
}
