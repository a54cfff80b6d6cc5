//===- Sm90WideGradients.cpp - Gradients in f32 with wgmma ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   1. lse and δ of each query to scratch               Sm90QueryNorms.cpp
//   2. dQ: blocks of threads own queries
//   3. dK and dV, in one kernel or in two: blocks of threads own keys
//   4. contributions to tables of captured tensors, if any: blocks of threads own queries
//
// One block of threads sums each row, in the order of heads and blocks, so the bits are
// reproducible. The disadvantage is that S and dP are computed twice. The kernel for dQ also sums
// contributions by head and by query, and the kernel for dK those by key (Sm80Captures.cpp).
//
// One lane of warpgroup 0 copies tiles, and three of its warps compute factors from them
// (Sm90WideProducer.cpp). The other warpgroups multiply (Sm90WideConsumer.cpp).
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
    bool multiplies = factor == 0 || config.computesGradients(),
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
                                 const QueryOrder &queryOrder, const KeyOrder &keyOrder)
    : problem(problem), config(config), queryOrder(queryOrder), keyOrder(keyOrder),
      shape(problem.shape), op(problem.op), places(config, problem.shape), own{map(0), map(1)},
      visited{map(2), map(3)} {}

HeadMap Sm90WideProblem::map(int64_t number) {
  bool ofKeys = config.ownsKeys() == (number < 2);
  Value tensor = number % 2 ? (ofKeys ? op.getV() : op.getDout()) : ofKeys ? op.getK() : op.getQ();
  return HeadMap(problem.kernel, tensor, number, /*roundsToTF32=*/!config.splits);
}

WideVisits::WideVisits(Sm90Builder &b, const Sm90WideProblem &wide) : b(b), wide(wide) {
  const Sm90Wide &config = wide.config;
  Layout layout = Layout::mmaSums(16, config.blockCols);
  Value zero = b.i32(0);
  if (config.ownsKeys()) {
    keys.emplace(b, wide.problem, config.blockRows(), config.blockCols, layout,
                 /*wantsK=*/config.sumsGradients(), /*wantsQ=*/false);
    auto place = wide.keyOrder.placeAt(b, b.block(), zero);
    keys->placeBlock(place.kvHead, place.keyBlock);
    firstRow = keys->firstKey;
    ownHead = place.kvHead;
    return;
  }
  auto [number, rowBlock] = wide.queryOrder.tileAt(b, b.block(), zero);
  queries.emplace(b, wide.problem, config.blockRows(), config.blockCols, layout,
                  config.addsToTables());
  queries->placeBlock(number, rowBlock);
  firstRow = queries->firstQuery;
  ownHead = number;
  visitedHead = b.div(number, wide.shape.group);
}

SmallVector<Value>
WideVisits::forEach(ValueRange first,
                    function_ref<CodeBuilder::Carried(Value, Value, ValueRange)> body,
                    int64_t contributions, function_ref<void(ArrayRef<Value>)> store) {
  Value zero = b.i32(0);
  auto visit = [&](const BlockSequence &blocks, Value before, Value after, ValueRange first) {
    SmallVector<Value> state(first);
    state.append(contributions, b.number(0));
    state = b.loop(before, after, 1, state, [&](Value number, ValueRange carried) {
      return body(number, blocks.at(keys ? b.sub(number, before) : number), carried);
    });
    if (contributions)
      store(ArrayRef(state).take_back(contributions));
    state.truncate(state.size() - contributions);
    return state;
  };
  if (!keys)
    return visit(*queries->blocks, zero, queries->blocks->count, first);
  SmallVector<Value> state(first);
  state.push_back(zero);
  state = b.loop(zero, b.i32(wide.shape.group), 1, state, [&](Value group, ValueRange state) {
    keys->placeHead(group);
    visitedHead = b.to32(keys->headNumber());
    Value before = state.back(), after = b.add(before, keys->blocks->count);
    SmallVector<Value> next = visit(*keys->blocks, before, after, state.drop_back());
    next.push_back(after);
    return next;
  });
  state.pop_back();
  return state;
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
            [&] { b.when(b.isElected(), [&] { emitWideProducer(b, wide); }); },
            [&] { emitWideFactors(b, wide); });
      },
      [&] {
        takeRegisters(b, groups, wideFactorRegisters);
        emitWideConsumer(b, wide, b.sub(group, b.i32(1)));
      });
}

void attention::lowerSm90Wide(const Sm80Problem &problem, const Sm90Wide &config, StringRef symbol,
                              const GpuTarget &target, ModuleOp entries, GpuKernel &info) {
  Sm80Work work = workOf(problem.op, config, target);
  QueryOrder queries;
  KeyOrder keys;
  if (config.ownsKeys())
    keys = chooseKeyOrder(work);
  else
    queries = attention::chooseQueryOrder(work);
  Sm90WideProblem wide(problem, config, queries, keys);
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
