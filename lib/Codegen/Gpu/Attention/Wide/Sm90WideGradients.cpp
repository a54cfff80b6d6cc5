//===- Sm90WideGradients.cpp - Gradients in f32 with wgmma ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   1. lse and δ of each query to scratch               Sm90QueryNorms.cpp
//   2. dQ: blocks of threads own queries                Sm90WideConsumer.cpp
//   3. dK and dV, in one kernel or in two: blocks of threads own keys
//
// One block of threads sums each row, in the order of heads and blocks, so the bits are
// reproducible. The disadvantage is that S and dP are computed twice.
//
// One lane of warpgroup 0 copies tiles. Its other warps compute factors for wgmma, in which the
// values of k are contiguous: parts for exact products (SplitProducts.cpp), and transposed factors
// for the sums (TransposeTile.cpp), to which they copy the parts:
//
//   producer                          three warps                        consumers
//   copy the own factors              for each visited block             for each visited block
//   for each visited block              for both factors                   S, dP;  release factors
//     for both factors                    wait; split in place             dS, P
//       wait until it is empty            for each transposed factor       dV += P · dO   (keys)
//       copy it, and lse and δ              wait until it is empty         dK or dQ += dS · Q or K
//                                           transpose;  release factor     release transposed ones
//
// Consumers read lse and δ after they have released the factors. Therefore there is one more buffer
// for these than stages.
//
//===----------------------------------------------------------------------===//

#include "Sm90WideGradients.h"
#include "Codegen/Gpu/Ptx/SplitProducts.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

using Places = Sm90WidePlaces;

Sm90WidePlaces::Sm90WidePlaces(const Sm90Wide &config, const Shape &shape)
    : normBytes(config.ownsKeys() ? config.blockCols * 4 : 0) {
  int64_t end = 0;
  auto take = [&](int64_t bytes) {
    end += bytes;
    return end - bytes;
  };
  for (int64_t factor : {0, 1}) {
    int64_t dim = factor ? shape.valueDim : shape.dim;
    bool multiplies = factor == 0 || config.sumsGradients(),
         turns = factor == 0 ? config.sumsGradients() : config.sumsV();
    ownBytes[factor] = multiplies ? tileBytes(config.blockRows(), dim, elementBytes) : 0;
    visitedBytes[factor] = tileBytes(config.blockCols, dim, elementBytes);
    turnedBytes[factor] =
        turns ? tileBytes(llvm::alignTo(dim, 16), config.blockCols, elementBytes) : 0;
    bool halves = multiplies && config.splits && config.blockCols == halfRow;
    lowDistance[factor] = halves ? halfRow * elementBytes : turnedBytes[factor];
    turnedStride[factor] = (halves ? 1 : config.parts()) * turnedBytes[factor];
    own[factor] = take(ownBytes[factor]);
    visited[factor] =
        take(config.stages * (multiplies ? config.parts() : 1) * visitedBytes[factor]);
    turned[factor] = take(config.stages * turnedStride[factor]);
  }
  norms = take((config.stages + 1) * 2 * normBytes);
  barriers = end;
}

Sm90WideProblem::Sm90WideProblem(const Sm80Problem &problem, const Sm90Wide &config,
                                 const KeyOrder &order)
    : problem(problem), config(config), order(order), shape(problem.shape), op(problem.op),
      places(config, problem.shape), own{map(0), map(1)}, visited{map(2), map(3)} {}

HeadMap Sm90WideProblem::map(int64_t number) {
  bool ofKeys = config.ownsKeys() == (number < 2);
  Value tensor = number % 2 ? (ofKeys ? op.getV() : op.getDout()) : ofKeys ? op.getK() : op.getQ();
  return HeadMap(problem.kernel, tensor, number, /*roundsToTF32=*/!config.splits);
}

WideVisits::WideVisits(Sm90Builder &b, const Sm90WideProblem &wide) : b(b), wide(wide) {
  const Sm90Wide &config = wide.config;
  const Shape &shape = wide.shape;
  const Sm80Backward &plan = wide.problem.plan;
  Value zero = b.i32(0);
  if (config.ownsKeys()) {
    keys.emplace(b, wide.problem, config.blockRows(), config.blockCols,
                 Layout::mmaSums(16, config.blockCols), /*wantsK=*/config.sumsGradients(),
                 /*wantsQ=*/false);
    auto place = wide.order.placeAt(b, b.block(), zero);
    keys->placeBlock(place.kvHead, place.keyBlock);
    firstRow = keys->firstKey;
    ownHead = place.kvHead;
    return;
  }
  auto [number, rowBlock] = plan.queryOrder.tileAt(b, b.block(), zero);
  Value own = b.rem(number, shape.heads);
  firstRow = b.mul(rowBlock, config.blockRows());
  ownHead = number;
  visitedHead = b.div(number, shape.group);
  head = {b.to64(b.div(number, shape.heads)), b.to64(own), b.to64(b.div(own, shape.group))};
  ranges = AttentionTiles(AttentionGradOp(wide.op)).getKeyTiles(config.blockCols);
  functions.emplace(b, wide.op, shape, head);
  Value last = b.min(b.add(firstRow, config.blockRows()), b.i32(shape.rows));
  blocks.emplace(b, ranges, functions->mask, head, firstRow, last);
}

SmallVector<Value>
WideVisits::forEach(ValueRange first,
                    function_ref<CodeBuilder::Carried(Value, Value, ValueRange)> body) {
  Value zero = b.i32(0);
  if (!keys)
    return b.loop(zero, blocks->count, 1, first, [&](Value number, ValueRange carried) {
      return body(number, blocks->at(number), carried);
    });
  SmallVector<Value> state(first);
  state.push_back(zero);
  state = b.loop(zero, b.i32(wide.shape.group), 1, state, [&](Value group, ValueRange state) {
    keys->placeHead(group);
    visitedHead = b.to32(keys->headNumber());
    Value before = state.back(), after = b.add(before, keys->blocks->count);
    SmallVector<Value> next =
        b.loop(before, after, 1, state.drop_back(), [&](Value number, ValueRange carried) {
          return body(number, keys->blocks->at(b.sub(number, before)), carried);
        });
    next.push_back(after);
    return next;
  });
  state.pop_back();
  return state;
}

bool WideVisits::isEverMasked() {
  return keys ? keys->isEverMasked()
              : !functions->mask.empty() || wide.shape.cols % wide.config.blockCols != 0;
}

bool WideVisits::isEverFree() const {
  return keys ? keys->isEverFree() : mayVisitFree(ranges, wide.shape.rows, wide.config.blockRows());
}

namespace {
class WideProducer : Sm90WideRole {
public:
  using Sm90WideRole::Sm90WideRole;
  void emit();

private:
  void copyBlock(Value number, Value block);
  void copyNorms(Value number, Value firstQuery, Value barrier);
};

/// The three warps that compute factors.
class WideFactors : Sm90WideRole {
public:
  using Sm90WideRole::Sm90WideRole;
  void emit();

private:
  void split(int64_t factor, const Stage &stage);
  void turn(int64_t factor, const Stage &stage);
  /// Makes the warp's accesses visible to products and copies, then arrives at the barriers.
  void signal(ArrayRef<Value> barriers);
};
} // namespace

void WideProducer::copyNorms(Value number, Value firstQuery, Value barrier) {
  const Sm80Backward &plan = wide.problem.plan;
  Value place = b.add(b.mul(b.to64(visits.visitedHead), plan.rowStride), b.to64(firstQuery)),
        to = norms(number);
  for (int64_t from : {plan.lse, plan.delta}) {
    b.copyBulk(to, b.address(b.shift(b.scratch(b.getF32Type()), b.add(place, from))),
               b.i32(places.normBytes), barrier);
    to = b.shiftBytes(to, places.normBytes);
  }
}

void WideProducer::copyBlock(Value number, Value block) {
  Stage stage = stageOf(number);
  Value firstRow = b.mul(block, config.blockCols);
  for (int64_t factor : {0, 1}) {
    int64_t norms = factor ? 0 : 2 * places.normBytes;
    Value copied = barrier(Places::Copied, factor, stage);
    b.wait(barrier(Places::Empty, factor, stage), isOther(stage.parity));
    b.expect(copied, places.visitedBytes[factor] + norms);
    copyTile(b, visited(factor, stage), wide.visited[factor], firstRow, visits.visitedHead,
             factor ? shape.valueDim : shape.dim, copied);
    if (norms)
      copyNorms(number, firstRow, copied);
  }
}

void WideProducer::emit() {
  Value full = barrierAt(Places::OwnFull);
  for (int64_t map = 0; map < 4; ++map)
    b.prefetchMap(b.tensorMap(map));
  b.expect(full, places.ownBytes[0] + places.ownBytes[1]);
  for (int64_t factor : {0, 1})
    if (multiplies(factor))
      copyTile(b, own(factor), wide.own[factor], visits.firstRow, visits.ownHead,
               factor ? shape.valueDim : shape.dim, full);
  visits.forEach({}, [&](Value number, Value block, ValueRange) -> CodeBuilder::Carried {
    copyBlock(number, block);
    return {};
  });
}

void WideFactors::signal(ArrayRef<Value> barriers) {
  b.fenceAsync();
  b.syncWarp();
  b.when(b.isEqual(b.lane(), 0), [&] {
    for (Value barrier : barriers)
      b.arrive(barrier);
  });
}

void WideFactors::split(int64_t factor, const Stage &stage) {
  b.wait(barrier(Places::Copied, factor, stage), stage.parity);
  splitTile(b, visited(factor, stage).base, places.visitedBytes[factor]);
  signal(barrier(Places::Full, factor, stage));
}

/// Transposes a factor: both of its parts, after all warps have split it, or its values, which it
/// splits for exact products.
void WideFactors::turn(int64_t factor, const Stage &stage) {
  b.wait(barrier(Places::TurnedEmpty, factor, stage), isOther(stage.parity));
  b.wait(fullBarrier(factor, stage), stage.parity);
  PanelTile from = visited(factor, stage), to = turned(factor, stage);
  auto transpose = [&](Value from, Value to, int64_t lowDistance, int64_t firstCol) {
    transposeTile(b, from, config.blockCols, to, colsOf(factor), lowDistance, firstCol);
  };
  int64_t distance = places.lowDistance[factor];
  bool halves = distance < Sm90Builder::panelBytes; // of the rows
  transpose(from.base, to.base, config.splits && !multiplies(factor) ? distance : 0, 0);
  if (splits(factor))
    transpose(b.shiftBytes(from.base, places.visitedBytes[factor]),
              halves ? to.base : b.shiftBytes(to.base, distance), 0, halves ? Places::halfRow : 0);
  signal({barrier(Places::TurnedFull, factor, stage), barrier(Places::Empty, factor, stage)});
}

void WideFactors::emit() {
  visits.forEach({}, [&](Value number, Value, ValueRange) -> CodeBuilder::Carried {
    Stage stage = stageOf(number);
    for (int64_t factor : {0, 1})
      if (splits(factor))
        split(factor, stage);
    for (int64_t factor : {1, 0}) // in the order of the sums
      if (turns(factor))
        turn(factor, stage);
    return {};
  });
}

static void initBarriers(Sm90Builder &b, const Sm90WideProblem &wide) {
  const Places &places = wide.places;
  int64_t warps = wide.config.groups * Sm90Builder::groupThreads / 32;
  b.when(b.isEqual(b.thread(), 0), [&] {
    auto init = [&](int64_t which, int64_t count) {
      b.initBarrier(b.sharedAt(places.barriers + which * Sm90Builder::barrierBytes), count);
    };
    init(Places::OwnFull, 1);
    for (int64_t i = 0; i < 2 * Places::mostStages; ++i) {
      bool turns = places.turnedBytes[i / Places::mostStages],
           multiplies = places.ownBytes[i / Places::mostStages];
      init(Places::Copied + i, 1);
      init(Places::Full + i, splittingWarps);
      init(Places::Empty + i, (multiplies ? warps : 0) + (turns ? splittingWarps : 0));
      init(Places::TurnedFull + i, splittingWarps);
      init(Places::TurnedEmpty + i, warps);
    }
    b.fenceBarriers();
  });
  b.barrier();
}

static void emitRoles(Sm90Builder &b, const Sm90WideProblem &wide) {
  int64_t groups = wide.config.groups;
  Value group = b.warpgroup();
  initBarriers(b, wide);
  b.when(
      b.isEqual(group, 0),
      [&] {
        giveRegisters(b, groups, wideFactorRegisters);
        b.when(
            b.isEqual(b.uniform(b.warp()), 0),
            [&] { b.when(b.isElected(), [&] { WideProducer(b, wide).emit(); }); },
            [&] { WideFactors(b, wide).emit(); });
      },
      [&] {
        takeRegisters(b, groups, wideFactorRegisters);
        emitWideConsumer(b, wide, b.sub(group, b.i32(1)));
      });
}

void attention::lowerSm90Wide(const Sm80Problem &problem, const Sm90Wide &config, StringRef symbol,
                              const GpuTarget &target, ModuleOp entries, GpuKernel &info) {
  Sm80Work work = workOf(problem.op, config, target);
  const QueryOrder &queries = problem.plan.queryOrder;
  KeyOrder keys;
  if (config.ownsKeys())
    keys = chooseKeyOrder(work);
  Sm90WideProblem wide(problem, config, keys);
  Sm90Builder b(wide.op.getLoc(), wide.op.getContext(), config.threads());
  b.enter(entries, problem.kernel, symbol, 1, /*scratch=*/true, /*maps=*/4);
  emitRoles(b, wide);
  b.leave();
  GpuLaunch launch{symbol.str(),
                   config.ownsKeys() ? keys.blocks() : queries.tiles(),
                   config.threads(),
                   wide.places.bytes(),
                   {}};
  launch.cost = config.ownsKeys() ? costOf(work, keys) : costOf(work, queries);
  for (const HeadMap &map : wide.own)
    launch.maps.push_back(map.get(config.blockRows()));
  for (const HeadMap &map : wide.visited)
    launch.maps.push_back(map.get(config.blockCols));
  launch.copyThreads = Sm90Builder::groupThreads;
  info.launches.push_back(std::move(launch));
}
