//===- Sm90WideConsumer.cpp - Consumers of gradients in f32 -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A warpgroup owns 64 rows. Their factors are in shared memory, and for exact products each thread
// splits its words of them before each step of k:
//
//   rows            queries                   keys
//   S, dP           Q · Kᵀ, dO · Vᵀ           K · Qᵀ, V · dOᵀ
//   sums            dQ += dS · K              dV += P · dO;  dK += dS · Q
//   lse, δ          in registers              in shared memory, for each visited block
//
// P and dS are already in the registers in which the sums expect their left factors. While one
// warpgroup computes them, the tensor cores process products of the other one, if there are two.
// Sums of contributions to captured tensors are further values of the loop over the blocks of a
// head. The kernel that adds contributions to tables only computes S and dP, of rows of queries.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Ptx/SplitProducts.h"
#include "Sm90WideGradients.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

using Places = Sm90WidePlaces;

namespace {
class WideConsumer : Sm90WideRole {
public:
  WideConsumer(Sm90Builder &b, const Sm90WideProblem &wide, Value group)
      : Sm90WideRole(b, wide), op(wide.op), group(group),
        layout(Layout::mmaSums(16, config.blockCols)),
        sumLayouts{Layout::mmaSums(16, colsOf(0)), Layout::mmaSums(16, colsOf(1))} {
    // Hide from ptxas that the address of the barriers is a constant; see Sm90Consumer.cpp.
    Value place = b.uniform(LLVM::PtrToIntOp::create(b, b.loc, b.getI32Type(), barrierAt(0)));
    base =
        b.shiftBytes(LLVM::IntToPtrOp::create(b, b.loc, base.getType(), place), -places.barriers);
  }
  void emit();

private:
  void placeRows();
  SmallVector<Value> multiplyRows(int64_t factor, const Stage &stage);
  SmallVector<Value> multiplySums(int64_t factor, ArrayRef<Value> sums, ArrayRef<Value> weights,
                                  const Stage &stage);
  SmallVector<Value> gradients(ArrayRef<Value> both, ArrayRef<Value> drawn, Value number,
                               Value block, ArrayRef<Value> contributions);
  SmallVector<Value> gradientsOf(ArrayRef<Value> s, ArrayRef<Value> dp, ArrayRef<Value> drawn,
                                 Value number, Value block, bool masked,
                                 ArrayRef<Value> contributions);
  SmallVector<Value> processBlock(Value number, Value block, ValueRange sums);
  int64_t numContributions() {
    return visits.keys ? visits.keys->emptyColumns().size() : visits.queries->numSums();
  }
  void storeContributions(ArrayRef<Value> sums);
  void store(ArrayRef<Value> sums);
  /// Returns the number of this warp among those of consumers.
  Value warp() { return b.sub(b.warp(), b.i32(Sm90Builder::groupThreads / 32)); }
  int64_t registersOf(int64_t factor) const {
    return turns(factor) ? sumLayouts[factor].numRegisters() : 0;
  }
  void release(Places::Barrier kind, int64_t factor, const Stage &stage) {
    b.when(b.isEqual(b.lane(), 0), [&] { b.arrive(barrier(kind, factor, stage)); });
  }

  AttentionGradOp op;
  Value group;
  const Layout layout, sumLayouts[2];
};
} // namespace

/// Selects the rows of this lane. Loads lse and δ of rows that are queries.
void WideConsumer::placeRows() {
  if (visits.keys)
    return visits.keys->placeLane(warp());
  const Sm80Backward &plan = wide.problem.plan;
  Pointer scratch = b.scratch(b.getF32Type());
  visits.queries->placeLane(warp(), [&](Value, Value existing, Value) {
    Value place = b.add(b.mul(b.to64(visits.ownHead), plan.rowStride), b.to64(existing));
    auto load = [&](int64_t from) {
      return b.load(b.getF32Type(), b.shift(scratch, b.add(place, from)));
    };
    return std::pair(load(plan.lse), load(plan.delta));
  });
}

/// Starts S (`factor` is 0) or dP.
SmallVector<Value> WideConsumer::multiplyRows(int64_t factor, const Stage &stage) {
  PanelTile all = own(factor), other = visited(factor, stage);
  Value rows =
      b.shiftBytes(all.base, b.mul(group, Sm90Builder::groupRows * Sm90Builder::panelBytes));
  SharedFactor left = b.factorAlong(rows, all.rows, colsOf(factor), Places::elementBytes),
               right = b.factorAlong(other.base, other.rows, colsOf(factor), Places::elementBytes);
  if (!config.splits)
    return b.multiply({}, left, right, config.blockCols, b.getF32Type());
  constexpr int64_t pending = 4, ahead = 2;
  return multiplySplitRows(b, rows, left.steps, right, places.visitedBytes[factor],
                           config.blockCols, pending, ahead);
}

/// Starts to add the product of P or dS to sums.
SmallVector<Value> WideConsumer::multiplySums(int64_t factor, ArrayRef<Value> sums,
                                              ArrayRef<Value> weights, const Stage &stage) {
  PanelTile tile = turned(factor, stage);
  SharedFactor right = b.factorAlong(tile.base, tile.rows, config.blockCols, Places::elementBytes);
  SmallVector<Value> words = toWideFactor(b, weights, config.splits);
  return config.splits ? multiplySplitAtOnce(b, sums, words, right, places.lowDistance[factor],
                                             colsOf(factor))
                       : b.multiply(sums, words, right, colsOf(factor), b.getF32Type());
}

/// Returns P and dS, or only dS if the rows are queries, then the updated contributions.
SmallVector<Value> WideConsumer::gradientsOf(ArrayRef<Value> s, ArrayRef<Value> dp,
                                             ArrayRef<Value> drawn, Value number, Value block,
                                             bool masked, ArrayRef<Value> contributions) {
  Value first = b.mul(block, config.blockCols);
  if (!visits.keys)
    return visits.queries->emit(s, dp, first, masked, drawn, contributions);
  Value own = b.shiftBytes(norms(number), b.mul(b.colOfLane(), 4));
  auto norm = [&](int64_t distance) {
    return [&, distance](int64_t at) -> Value {
      return LLVM::LoadOp::create(b, b.loc, b.getF32Type(), b.shiftBytes(own, distance + at * 4));
    };
  };
  return visits.keys->emit(s, dp, first, norm(0), norm(places.normBytes), masked, drawn,
                           contributions);
}

SmallVector<Value> WideConsumer::gradients(ArrayRef<Value> both, ArrayRef<Value> drawn,
                                           Value number, Value block,
                                           ArrayRef<Value> contributions) {
  size_t count = layout.numRegisters();
  auto emit = [&](bool masked) {
    return gradientsOf(both.take_front(count), both.drop_front(count), drawn, number, block, masked,
                       contributions);
  };
  if (!visits.isEverMasked() || !visits.isEverFree())
    return emit(visits.isEverMasked());
  size_t weights = visits.keys ? both.size() : config.addsToTables() ? 0 : count;
  SmallVector<Type> types(weights + contributions.size(), b.getF32Type());
  return b.choose(
      visits.isFree(block), types, [&] { return emit(false); }, [&] { return emit(true); });
}

SmallVector<Value> WideConsumer::processBlock(Value number, Value block, ValueRange sums) {
  Stage stage = stageOf(number);
  Value first = b.mul(block, config.blockCols);
  SmallVector<Value> both,
      drawn = visits.keys ? visits.keys->draw(first) : visits.queries->draw(first);
  for (int64_t factor : {0, 1})
    if (multiplies(factor)) {
      b.wait(fullBarrier(factor, stage), stage.parity);
      llvm::append_range(both, multiplyRows(factor, stage));
    }
  both = b.waitForSums(both);
  for (int64_t factor : {0, 1})
    if (multiplies(factor))
      release(Places::Empty, factor, stage);
  size_t count = layout.numRegisters(), ofFirst = registersOf(0),
         products = ofFirst + registersOf(1);
  SmallVector<Value> contributions(sums.drop_front(products)), next[2];
  sums = sums.take_front(products);
  SmallVector<Value> weights = gradients(both, drawn, number, block, contributions);
  contributions.assign(weights.end() - contributions.size(), weights.end());
  weights.truncate(weights.size() - contributions.size());
  for (int64_t factor : {1, 0}) {
    if (!turns(factor))
      continue;
    SmallVector<Value> own(factor ? sums.drop_front(ofFirst) : sums.take_front(ofFirst));
    ArrayRef<Value> left = ArrayRef(weights);
    b.wait(barrier(Places::TurnedFull, factor, stage), stage.parity);
    next[factor] =
        multiplySums(factor, own, factor ? left.take_front(count) : left.take_back(count), stage);
  }
  SmallVector<Value> all = llvm::to_vector(llvm::concat<Value>(next[0], next[1]));
  if (products)
    all = b.waitForSums(all);
  if (visits.keys)
    b.syncWarp(); // all lanes have read lse and δ
  for (int64_t factor : {0, 1})
    if (turns(factor))
      release(Places::TurnedEmpty, factor, stage);
  llvm::append_range(all, contributions);
  return all;
}

void WideConsumer::storeContributions(ArrayRef<Value> sums) {
  if (visits.keys)
    visits.keys->storeColumns(sums);
  else
    visits.queries->storeSums(sums, warp(), config.consumerWarps());
}

void WideConsumer::store(ArrayRef<Value> sums) {
  int64_t own = registersOf(0);
  auto store = [&](int64_t factor, ArrayRef<Value> registers, Value result, double scale) {
    HeadTensor out = headTensorOf(b, wide.problem.kernel, result);
    if (!out.place.base)
      return;
    Value batch = visits.keys ? visits.keys->batch : visits.queries->head.batch,
          head = visits.keys ? visits.keys->kvHead : visits.queries->head.head;
    ArrayRef<Value> numbers = visits.keys ? visits.keys->numbers : visits.queries->numbers;
    SmallVector<Value> factors(numbers.size(), scale == 1 ? Value() : b.number(scale));
    storeRows(b, {sumLayouts[factor], SmallVector<Value>(registers)}, numbers, factors,
              slabOf(b, out, batch, head));
  };
  if (turns(0))
    store(0, sums.take_front(own), visits.keys ? op.getDk() : op.getDq(),
          op.getScale().convertToDouble());
  if (turns(1))
    store(1, sums.drop_front(own), op.getDv(), 1);
}

void WideConsumer::emit() {
  placeRows();
  SmallVector<Value> sums(registersOf(0) + registersOf(1), b.number(0));
  b.wait(barrierAt(Places::OwnFull), b.i32(0));
  sums = visits.forEach(
      sums,
      [&](Value number, Value block, ValueRange sums) { return processBlock(number, block, sums); },
      numContributions(), [&](ArrayRef<Value> sums) { storeContributions(sums); });
  store(sums);
}

void attention::emitWideConsumer(Sm90Builder &b, const Sm90WideProblem &wide, Value group) {
  WideConsumer(b, wide, group).emit();
}
