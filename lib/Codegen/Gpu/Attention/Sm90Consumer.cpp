//===- Sm90Consumer.cpp - Consumers of the forward pass with wgmma --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The product of Q with a block of keys runs while the softmax of the previous block is computed:
//
//   for each block of queries
//     S = Q · K[0]ᵀ;  P = softmax(S);
//     for each further block i of keys
//       start S = Q · K[i]ᵀ;
//       start O = O + P · V[i - 1];
//       wait for S;  release K[i];  S' = softmax(S)         during the product of O
//       wait for O;  release V[i - 1];  O = O · a;  P = S';
//     O = O + P · V[last];  O / l through shared memory, lse;
//
// Warpgroups start products alternately (named barriers 1 and up), so that the softmax of one
// warpgroup overlaps with the products of another. A warpgroup that has started its two products
// signals the next warpgroup.
//
// Masked and unmasked blocks need different code. A loop for both kinds of blocks would need a
// branch between the start and the end of a product. Therefore the partly masked blocks come first
// and have a loop of their own, which always includes the first block. In this loop, the softmax
// does not overlap with products of the same warpgroup. The loss of time is small, because few
// blocks are partly masked. With two loops, score functions are emitted only twice. If no block can
// be free of masked elements, there is only one loop, which treats all blocks as masked.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Ptx/SplitProducts.h"
#include "ForwardScores.h"
#include "Sm90Roles.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static constexpr int64_t warpRows = 16;

namespace {
class Consumer : Sm90Role {
public:
  Consumer(Sm90Builder &b, const Sm90Problem &problem, Value group);
  void emit();

private:
  /// The values that the loop over keys carries. `weights` is the P of the latest block, in the
  /// form of a left factor.
  struct State {
    Fragment o;
    ForwardScores::State rows;
    SmallVector<Value> weights;
    SmallVector<Value> flat() const;
  };
  State unflatten(ValueRange values) const;
  Value consume(const QueryTile &tile, Value before, Value met);
  State start() {
    return {{outputLayout, SmallVector<Value>(outputLayout.numRegisters(), b.number(0))},
            scores->start(),
            {}};
  }
  void correct(Fragment &o, ArrayRef<Value> correction);
  Fragment weighAlone(Value turn, Value met, ForwardScores::State &rows,
                      SmallVector<Value> &correction);
  State begin(Value met);
  State processBlockAlone(Value turn, Value met, State state);
  State beginMasked(Value met);
  State processBlock(Value turn, Value met, State state);
  State loop(Value from, Value met, const State &state);
  State addLast(State state, const Stage &stage);
  void finish(const QueryTile &tile, const State &state);

  SmallVector<Value> multiplyKeys(const Stage &stage);
  /// Returns true if the parts of Q and of P do not fit the registers together, beside O.
  bool multipliesApart() const { return config.splits && paddedValueDim(shape) > 192; }
  SmallVector<Value> multiplyKeyParts(Value queries, ArrayRef<int64_t> places,
                                      const SharedFactor &right);
  SmallVector<Value> multiplyValues(const State &state, const Stage &stage);
  SmallVector<Value> toWords(const Fragment &weights);
  Value firstColOf(Value turn) { return b.mul(sequence->at(turn), config.blockCols); }
  Fragment weightsOf(SmallVector<Value> sums, Value turn, ArrayRef<Value> drawn,
                     ForwardScores::State &rows, SmallVector<Value> &correction, bool masked);
  void release(Value barrier) {
    b.when(isFirstLane, [&] { b.arrive(barrier); });
  }
  bool isOneBlock() const { return shape.cols <= config.blockCols; }
  void waitForTurn();
  void endTurn();

  const Type element;
  const Layout scoreLayout, outputLayout;
  Value group, warp, isFirstLane;
  std::optional<ForwardScores> scores;
  // True if the loop in which softmax and products overlap may process masked blocks.
  bool masked = false;
  std::optional<KeySequence> sequence;
};
} // namespace

Consumer::Consumer(Sm90Builder &b, const Sm90Problem &problem, Value group)
    : Sm90Role(b, problem), element(problem.op.getQ().getType().getElementType()),
      scoreLayout(Layout::mmaSums(warpRows, config.blockCols)),
      outputLayout(Layout::mmaSums(warpRows, paddedValueDim(shape))), group(group),
      warp(b.rem(b.warp(), Sm90Builder::groupThreads / 32)), isFirstLane(b.isEqual(b.lane(), 0)) {
  // Hide from ptxas that the address of the barriers is a constant. Otherwise ptxas computes the
  // address in uniform registers at places where a single lane arrives at a barrier. In this case,
  // ptxas also treats the surrounding code as code of single lanes. It then copies each matrix
  // descriptor before the descriptor is used.
  Value place = b.uniform(LLVM::PtrToIntOp::create(b, b.loc, b.getI32Type(), barriers));
  barriers = LLVM::IntToPtrOp::create(b, b.loc, barriers.getType(), place);
}

SmallVector<Value> Consumer::State::flat() const {
  SmallVector<Value> all(o.registers);
  llvm::append_range(all, rows.max);
  llvm::append_range(all, rows.sum);
  llvm::append_range(all, weights);
  return all;
}

Consumer::State Consumer::unflatten(ValueRange values) const {
  auto take = [&](int64_t count) {
    SmallVector<Value> some(values.take_front(count));
    values = values.drop_front(count);
    return some;
  };
  State state{{outputLayout, take(outputLayout.numRegisters())}, {}, {}};
  state.rows.max = take(scoreLayout.rowsOfLane());
  state.rows.sum = take(scoreLayout.rowsOfLane());
  state.weights = take(values.size());
  return state;
}

SmallVector<Value> Consumer::multiplyKeys(const Stage &stage) {
  PanelTile all = queries(), keyTile = keys(stage);
  Value own =
      b.shiftBytes(all.base, b.mul(group, Sm90Builder::groupRows * Sm90Builder::panelBytes));
  SharedFactor left = b.factorAlong(own, all.rows, paddedDim(shape), config.elementBytes()),
               right = b.factorAlong(keyTile.base, keyTile.rows, paddedDim(shape),
                                     config.elementBytes());
  return config.splits ? multiplyKeyParts(own, left.steps, right)
                       : b.multiply({}, left, right, config.blockCols, element);
}

/// Starts the exact product of Q and a block of keys in f32.
SmallVector<Value> Consumer::multiplyKeyParts(Value queries, ArrayRef<int64_t> places,
                                              const SharedFactor &right) {
  // The wider the head, the more registers O needs. Random numbers take registers, too.
  int64_t cols = paddedValueDim(shape),
          pending = std::max(2, (cols > 128  ? 2
                                 : cols > 96 ? 3
                                             : 4) -
                                    (scores->mixes() ? 1 : 0)),
          ahead = multipliesApart() ? 1 : 2;
  return multiplySplitRows(b, queries, places, right, problem.places.keyBytes, config.blockCols,
                           pending, ahead);
}

/// Starts O + P · V. If Q and P are multiplied apart, the products of the last two steps of k
/// remain in flight.
SmallVector<Value> Consumer::multiplyValues(const State &state, const Stage &stage) {
  PanelTile tile = values(stage);
  int64_t cols = paddedValueDim(shape), distance = problem.places.factorBytes;
  if (!config.isWide)
    return b.multiply(state.o.registers, state.weights,
                      b.factorAcross(tile.base, tile.rows, config.blockCols), cols, element);
  SharedFactor right = b.factorAlong(tile.base, tile.rows, config.blockCols, config.elementBytes());
  if (!config.splits)
    return b.multiply(state.o.registers, state.weights, right, cols, element);
  if (!multipliesApart())
    return multiplySplitAtOnce(b, state.o.registers, state.weights, right, distance, cols);
  auto wordsOf = [&](int64_t step) {
    return SmallVector<Value>(ArrayRef(state.weights).slice(step * wordsPerStep, wordsPerStep));
  };
  return multiplySplit(b, state.o.registers, wordsOf, right, distance, cols, /*pending=*/2);
}

/// Emits code that waits until the previous warpgroup has arrived at the barrier of this warpgroup.
/// For the first warpgroup, the previous warpgroup is the last warpgroup.
void Consumer::waitForTurn() {
  if (config.inTurns)
    b.syncNamed(b.add(group, 1), 2 * Sm90Builder::groupThreads);
}

void Consumer::endTurn() {
  if (config.inTurns)
    b.arriveNamed(b.add(b.rem(b.add(group, 1), config.groups), 1), 2 * Sm90Builder::groupThreads);
}

/// Computes the weights of the block at position `turn`. `sums` is the product Q · Kᵀ of this
/// block, and `drawn` are its random numbers.
Fragment Consumer::weightsOf(SmallVector<Value> sums, Value turn, ArrayRef<Value> drawn,
                             ForwardScores::State &rows, SmallVector<Value> &correction,
                             bool masked) {
  Fragment s{scoreLayout, std::move(sums)};
  Value firstCol = firstColOf(turn);
  // Otherwise LLVM computes values of the columns before the code of other blocks, where factors of
  // f32 products take the registers.
  if (masked || scores->alwaysModifies())
    s = scores->modify(s, config.isWide ? b.opaque(firstCol) : firstCol, masked,
                       /*endsBlocks=*/true);
  Fragment p = scores->softmax(s, rows, correction);
  // Otherwise LLVM keeps values of the columns since modify() in registers.
  if (scores->mixes())
    firstCol = b.opaque(firstCol);
  return scores->weigh(p, firstCol, drawn);
}

/// Returns the words of the left factor of P · V. In f32, TransposeTile.cpp has put the keys of V
/// in the order of the columns that a lane holds.
SmallVector<Value> Consumer::toWords(const Fragment &weights) {
  return config.isWide ? toWideFactor(b, weights.registers, config.splits)
                       : toFactor(b, weights, element);
}

/// Multiplies O by the correction, because O was computed with an earlier maximum.
void Consumer::correct(Fragment &o, ArrayRef<Value> correction) {
  for (auto [reg, x] : llvm::enumerate(o.registers))
    x = b.mulf(x, correction[outputLayout.rowOf(reg)]);
}

/// Computes the product Q · Kᵀ of a block, waits for the product, and returns the weights of the
/// block. No other product of the warpgroup runs at the same time.
Fragment Consumer::weighAlone(Value turn, Value met, ForwardScores::State &rows,
                              SmallVector<Value> &correction) {
  Stage stage = keyStage(b.add(met, turn));
  SmallVector<Value> drawn = scores->draw(firstColOf(turn));
  b.wait(barrier(Sm90Places::KeysFull, stage), stage.parity);
  SmallVector<Value> sums = b.waitForSums(multiplyKeys(stage));
  release(barrier(Sm90Places::KeysEmpty, stage));
  return weightsOf(std::move(sums), turn, drawn, rows, correction, scores->canBeMasked());
}

/// Processes the first block of keys: computes its weights, and adds nothing to O.
Consumer::State Consumer::begin(Value met) {
  State state = start();
  SmallVector<Value> correction;
  state.weights = toWords(weighAlone(b.i32(0), met, state.rows, correction));
  return state;
}

/// Adds the product of the previous block to O, then computes the weights of this block.
Consumer::State Consumer::processBlockAlone(Value turn, Value met, State state) {
  state.o.registers = b.choose(
      b.isLess(b.i32(0), turn), ValueRange(state.o.registers).getTypes(),
      [&] { return addLast(state, valueStage(b.sub(b.add(met, turn), b.i32(1)))).o.registers; },
      [&] { return state.o.registers; });
  SmallVector<Value> correction;
  Fragment weights = weighAlone(turn, met, state.rows, correction);
  correct(state.o, correction);
  state.weights = toWords(weights);
  return state;
}

/// Processes the blocks with masked elements, which come first. Processes at least one block.
Consumer::State Consumer::beginMasked(Value met) {
  State state = start();
  state.weights.assign(scoreLayout.numRegisters() * config.elementBytes() / 4, b.i32(0));
  return unflatten(b.loop(b.i32(0), b.max(sequence->maskedCount, b.i32(1)), 1, state.flat(),
                          [&](Value number, ValueRange carried) {
                            return processBlockAlone(number, met, unflatten(carried)).flat();
                          }));
}

Consumer::State Consumer::processBlock(Value turn, Value met, State state) {
  Value number = b.add(met, turn);
  Stage stage = keyStage(number), before = valueStage(b.sub(number, b.i32(1)));
  SmallVector<Value> drawn = scores->draw(firstColOf(turn));
  b.wait(barrier(Sm90Places::KeysFull, stage), stage.parity);
  waitForTurn();
  SmallVector<Value> sums = multiplyKeys(stage), correction;
  if (multipliesApart())
    sums = b.waitForSums(sums);
  b.wait(barrier(Sm90Places::ValuesFull, before), before.parity);
  state.o.registers = multiplyValues(state, before);
  endTurn();
  if (!multipliesApart())
    sums = b.waitForSums(sums, 1);
  release(barrier(Sm90Places::KeysEmpty, stage));
  Fragment weights = weightsOf(sums, turn, drawn, state.rows, correction, masked);
  // ptxas moves a wait for products up within its basic block, to before the exponentials. A second
  // wait for values that have already come takes no time, and ends the block.
  b.wait(barrier(Sm90Places::ValuesFull, before), before.parity);
  state.o.registers = b.waitForSums(state.o.registers);
  release(barrier(Sm90Places::ValuesEmpty, before));
  correct(state.o, correction);
  state.weights = toWords(weights);
  return state;
}

Consumer::State Consumer::loop(Value from, Value met, const State &state) {
  // If there are two blocks, LLVM would replace the loop over the second one by the code of this
  // block, and ptxas would compute values of both blocks at once.
  if (shape.cols <= 2 * config.blockCols && !config.isWide)
    from = b.opaque(from);
  return unflatten(
      b.loop(from, sequence->count, 1, state.flat(), [&](Value number, ValueRange carried) {
        return processBlock(number, met, unflatten(carried)).flat();
      }));
}

Consumer::State Consumer::addLast(State state, const Stage &stage) {
  b.wait(barrier(Sm90Places::ValuesFull, stage), stage.parity);
  state.o.registers = b.waitForSums(multiplyValues(state, stage));
  release(barrier(Sm90Places::ValuesEmpty, stage));
  return state;
}

/// Copies O / l of the rows of a warp to shared memory, and from there to the result. If O uses the
/// memory of Q, signals that the tile of Q is empty as soon as O has been read from shared memory.
void Consumer::finish(const QueryTile &tile, const State &state) {
  SmallVector<Value> inverses =
      scores->finish(state.rows, b.destination(problem.kernel, problem.op.getLse()));
  if (config.isWide) {
    HeadTensor out = headTensorOf(b, problem.kernel, problem.op.getO());
    if (out.place.base)
      storeRows(b, state.o, scores->rowNumbers(), inverses,
                slabOf(b, out, tile.head.batch, tile.head.head));
    return;
  }
  if (!problem.o.exists()) {
    if (!config.ownOutput)
      release(barrier(Sm90Places::QueriesEmpty));
    return;
  }
  auto syncWarp = [&] { NVVM::SyncWarpOp::create(b, b.loc, b.i32(-1)); };
  if (config.ownOutput) {
    b.when(isFirstLane, [&] { b.waitForStores(0, /*sourceOnly=*/true); });
    syncWarp();
  }
  Value row = b.add(b.mul(group, Sm90Builder::groupRows), b.mul(warp, warpRows));
  PanelTile own{
      b.shiftBytes(b.sharedAt(problem.places.output), b.mul(row, Sm90Builder::panelBytes)),
      config.blockRows()};
  storeFragment(b, state.o, inverses, element, own);
  b.fenceAsync();
  syncWarp();
  b.when(isFirstLane, [&] {
    storeTile(b, own, problem.o, b.add(tile.firstRow, row), tile.number, 0, shape.valueDim);
    b.commitStores();
    if (!config.ownOutput) {
      b.waitForStores(0, /*sourceOnly=*/true);
      b.arrive(barrier(Sm90Places::QueriesEmpty));
    }
  });
}

Value Consumer::consume(const QueryTile &tile, Value before, Value met) {
  scores.emplace(b, problem.op, shape, scoreLayout, tile.head);
  Value row =
      b.add(b.mul(group, Sm90Builder::groupRows), b.add(b.mul(warp, warpRows), b.rowOfLane()));
  scores->placeRows(b.add(tile.firstRow, row));
  sequence.emplace(b, problem, scores->mask, tile);
  b.wait(barrier(Sm90Places::QueriesFull), b.rem(before, 2));
  // ptxas cannot pipeline the products of a loop that LLVM has replaced by a branch.
  bool first = !isOneBlock() && scores->canBeMasked() && problem.leavesFree();
  masked = scores->canBeMasked() && !first;
  State state = first ? beginMasked(met) : begin(met);
  if (!isOneBlock())
    state = loop(b.max(first ? sequence->maskedCount : b.i32(1), b.i32(1)), met, state);
  Value after = b.add(met, isOneBlock() ? b.i32(1) : sequence->count);
  state = addLast(std::move(state), valueStage(b.sub(after, b.i32(1))));
  if (config.splits) { // all lanes have loaded their words of Q
    b.fenceAsync();
    b.syncWarp();
  }
  if (config.ownOutput)
    release(barrier(Sm90Places::QueriesEmpty));
  finish(tile, state);
  return after;
}

void Consumer::emit() {
  if (config.inTurns)
    b.when(b.isEqual(group, config.groups - 1), [&] { endTurn(); });
  forEachTile(
      [&](const QueryTile &tile, Value before, Value met) { return consume(tile, before, met); });
  if (config.inTurns)
    b.when(b.isEqual(group, 0), [&] { waitForTurn(); });
  if (problem.storesBoxes())
    b.when(isFirstLane, [&] { b.waitForStores(0, /*sourceOnly=*/true); });
}

void attention::emitConsumer(Sm90Builder &b, const Sm90Problem &problem, Value group) {
  Consumer(b, problem, group).emit();
}
