//===- Sm90Backward.cpp - Backward pass with wgmma --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   1. lse and δ of each query to scratch               Sm90QueryNorms.cpp
//   2. dK, dV and dQ, with sums of dQ in scratch        Sm90KeyGradients.cpp
//
// If the kernel of Sm80QueryGradients.cpp computes dQ, this kernel is launched instead of step 1.
// A consumer thread needs these registers:
//
//   (dim + valueDim) / 2         sums of dK and dV; the larger of them if warpgroups share keys
//   tileQueries                  S and dP of the queries of a tile; in addition
//   .. / 2                       P and dS in 16 bits of the block's other queries; or, if more,
//   blockQueries / 2 + 32        P and dS in 16 bits of all queries (not if warpgroups share keys:
//                                these are in shared memory), and dQ
//   tileQueries / 8              lse and δ
//   24                           addresses, counters, values of score functions
//   8                            with masks: bounds of unmasked blocks, existing rows and keys
//   4                            if query heads share keys: the head, blocks of earlier heads
//   36                           weight_mod; with masks 44, or 24 for 128 queries, whose random
//                                numbers are computed before the products
//
// Each of these terms is necessary: if one of them were left out, the plan would accept shapes for
// which ptxas spills registers (see test/Codegen/Gpu/attention-spills.test).
//
//===----------------------------------------------------------------------===//

#include "Sm90Backward.h"
#include "Codegen/Kernel/Attention/AttentionContributions.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

using Places = Sm90KeyPlaces;

Sm90KeyPlaces::Sm90KeyPlaces(const Sm90Keys &config, const Shape &shape)
    : queryBytes(tileBytes(config.blockQueries, shape.dim)),
      doutBytes(tileBytes(config.blockQueries, shape.valueDim)),
      normsBytes(config.blockQueries * normBytes) {
  bool shares = config.sharesKeys;
  QuerySums querySums(config, shape);
  values = tileBytes(config.blockKeys(), shape.dim);
  queries = values + tileBytes(config.blockKeys(), shape.valueDim);
  douts = queries + stages * queryBytes;
  weights = douts + config.doutStages * doutBytes;
  gradientBytes = config.addsToQ || shares ? tileBytes(config.blockKeys(), config.blockQueries) : 0;
  gradients = weights + (shares ? stages * gradientBytes : 0);
  sums = gradients + stages * gradientBytes;
  int64_t sumBytes = querySums.floatsOf(0) * 4,
          roundedBytes = tileBytes(config.blockQueries, querySums.firstCol(1));
  rounded = shares ? sums : sums + (config.addsToQ ? sumBytes : 0);
  lse = !config.addsToQ
            ? sums
            : sums + (shares ? std::max(sumBytes, roundedBytes) : sumBytes + queryBytes);
  delta = lse + stages * normsBytes;
  barriers = delta + config.doutStages * normsBytes;
  visit = barriers + NumBarriers * Sm90Builder::barrierBytes;
  loads = visit + 4;
  rowSums = loads + 4;
  end = rowSums + config.rowSums * config.blockKeys() / 16 * config.blockQueries * 4;
}

Sm80Needs attention::sm90KeyNeeds(const Sm90Keys &config, const Shape &shape, bool hasMask) {
  int64_t sums = config.addsToQ ? QuerySums(config, shape).registers() : 0,
          dim = config.tables ? 0 : paddedDim(shape.dim) / 2,
          valueDim = config.tables ? 0 : paddedDim(shape.valueDim) / 2;
  int64_t scores =
      config.sharesKeys
          ? std::max(config.tileQueries, sums)
          : std::max(config.tileQueries + (config.blockQueries - config.tileQueries) / 2,
                     sums ? config.blockQueries / 2 + sums : 0);
  bool masks = hasMask || shape.rows % config.blockQueries != 0;
  int64_t others = config.tileQueries / 8 + 24 + (masks ? 8 : 0) + (shape.group > 1 ? 4 : 0);
  return {scores + (config.sharesKeys ? std::max(dim, valueDim) : dim + valueDim) + others,
          Places(config, shape).bytes()};
}

/// Returns the number of contributions to captured tensors whose indices depend on `where`.
static int64_t countContributions(AttentionGradOp op, Dependence where) {
  return llvm::count_if(collectContributions(op),
                        [&](const Contributed &c) { return c.where == where; });
}

/// Returns the number of registers that sums of contributions by head and by query, and largest
/// contributions to tables, take with the values of their functions. ptxas spills no register in
/// the kernels of attention-spills.test with these numbers.
static int64_t registersOfSums(AttentionGradOp op, bool wholeRows) {
  int64_t rows = countContributions(op, Dependence::Row),
          all = countContributions(op, Dependence::None) +
                countContributions(op, Dependence::Both) + rows;
  bool hasMask = !op.getMaskMod().empty();
  // KeyConsumer::gradientsOf() ends blocks between queries, which branches for masks replace.
  constexpr int64_t ofFunctions = 36, ofFurther = 11;
  int64_t values = hasMask ? ofFurther * (all - 1) : wholeRows ? 0 : ofFunctions;
  if (hasMask && !wholeRows && !op.getWeightMod().empty())
    values += 12; // queries that exist
  return all + values + rows * KeyScores::sumsOfRow;
}

std::optional<Sm90Keys> attention::chooseSm90Keys(AttentionGradOp op, const GpuTarget &target) {
  for (Value tensor : {op.getQ(), op.getK(), op.getV(), op.getDout()})
    if (!target.hasWarpgroups() || getElementTypeOrSelf(tensor).isF32() ||
        !hasTensorMap(cast<RankedTensorType>(tensor.getType())))
      return std::nullopt;
  Shape shape = getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType());
  bool hasFunctions =
      !op.getScoreMod().empty() || !op.getWeightMod().empty() || !op.getCaptures().empty();
  SmallVector<Sm90Keys> configs;
  constexpr int64_t registersOfWeights = 36;
  constexpr int64_t mostKeys = 64 * 65535; // QueryAdder::placeOf() counts blocks in 16 bits
  int64_t rowSums = countContributions(op, Dependence::Row),
          others = rowSums + countContributions(op, Dependence::None) +
                   countContributions(op, Dependence::Both);
  bool adds = shape.cols <= mostKeys;
  if (adds && panelsOf(shape.dim) == 1) {
    if (!hasFunctions)
      configs.push_back({2, 128, 128, /*addsToQ=*/true});
    configs.push_back({2, 128, 64, /*addsToQ=*/true});
  } else if (adds && panelsOf(shape.dim) == 2) {
    // Blocks have 64 queries, and each warpgroup computes one panel of columns of dQ.
    configs.push_back({2, 64, 64, /*addsToQ=*/true});
  }
  auto addShared = [&](bool addsToQ) {
    // Sm90KeySums::storeColumns() passes sums in the memory of P and dS.
    constexpr int64_t mostColumns = 32;
    if (countContributions(op, Dependence::Column) > mostColumns)
      return;
    for (int64_t doutStages : {2, 1})
      configs.push_back({2, 64, 32, addsToQ, /*sharesKeys=*/true, doutStages});
  };
  // For small heads, a separate dQ takes fewer clocks than P and dS in shared memory.
  if (adds && std::max(shape.dim, shape.valueDim) > Sm90Builder::panelCols)
    addShared(/*addsToQ=*/true);
  configs.push_back({2, 64, 64, /*addsToQ=*/false});
  addShared(/*addsToQ=*/false);
  for (Sm90Keys &config : configs) {
    if (config.addsToQ)
      config.rowSums = rowSums;
    Sm80Needs needs = sm90KeyNeeds(config, shape, !op.getMaskMod().empty());
    if (!op.getWeightMod().empty())
      needs.registers += op.getMaskMod().empty()      ? registersOfWeights
                         : config.blockQueries == 128 ? registersOfWeights - 12
                                                      : registersOfWeights + 8;
    if (config.addsToQ && others)
      needs.registers += registersOfSums(op, shape.rows % config.blockQueries == 0);
    // The sums by query of all blocks of keys take at most twice the bytes of the sums of dQ.
    int64_t keyBlocks = llvm::divideCeil(shape.cols, config.blockKeys());
    bool fitsScratch = config.rowSums * keyBlocks <= 2 * QuerySums(config, shape).dim;
    if (fitsScratch && needs.registers <= registersOfRoles(config.groups).consumer &&
        needs.sharedBytes <= target.sharedPerBlock)
      return config;
  }
  return std::nullopt;
}

std::optional<Sm90Keys> attention::chooseSm90Tables(AttentionGradOp op, const GpuTarget &target) {
  Shape shape = getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType());
  for (int64_t doutStages : {2, 1}) {
    Sm90Keys config{2, 64, 64, /*addsToQ=*/false, /*sharesKeys=*/false, doutStages};
    config.tables = true;
    Sm80Needs needs = sm90KeyNeeds(config, shape, !op.getMaskMod().empty());
    if (needs.registers <= registersOfRoles(config.groups).consumer &&
        needs.sharedBytes <= target.sharedPerBlock)
      return config;
  }
  return std::nullopt;
}

void attention::placeSm90Scratch(Sm80Backward &plan, const Shape &shape) {
  const Sm90Keys &config = *plan.keysOfGroups;
  plan.placeNorms(shape, llvm::alignTo(shape.rows, config.blockQueries));
  if (!config.addsToQ)
    return;
  constexpr int64_t lineFloats = 32;
  int64_t blocks = shape.batch * shape.heads * (plan.rowStride / config.blockQueries);
  plan.added = 2 * plan.delta;
  plan.querySums = llvm::alignTo(plan.added + blocks, lineFloats);
  int64_t end = plan.querySums + blocks * QuerySums(config, shape).floats();
  if (plan.order.parts > 1) {
    int64_t keyBlocks = plan.order.kvHeads * plan.order.keyBlocks;
    plan.addedParts = end;
    plan.keySums = llvm::alignTo(plan.addedParts + keyBlocks, lineFloats);
    end = plan.keySums +
          keyBlocks * config.blockKeys() * (paddedDim(shape.dim) + paddedDim(shape.valueDim));
  }
  plan.scratchBytes = end * 4;
}

static void initBarriers(Sm90Builder &b, const Sm90Keys &config, const Places &places) {
  b.when(b.isEqual(b.thread(), 0), [&] {
    auto init = [&](int64_t which, int64_t count) {
      b.initBarrier(b.sharedAt(places.barriers + which * Sm90Builder::barrierBytes), count);
    };
    int64_t warps = config.groups * Sm90Builder::groupThreads / 32;
    init(Places::KeysFull, 1);
    init(Places::KeysEmpty, warps);
    init(Places::SumsLoaded, 1);
    for (int64_t i = 0; i < Places::stages; ++i) {
      init(Places::QueriesFull + i, 1);
      init(Places::DoutFull + i, 1);
      init(Places::QueriesEmpty + i, warps);
      init(Places::DoutEmpty + i, warps);
    }
    b.fenceBarriers();
    b.store(b.i32(0), {b.sharedAt(places.loads), b.getI32Type(), b.constant(0)});
  });
  b.barrier();
}

void Sm90KeyRole::place(Value block, Value turn) {
  const KeyOrder &order = plan.order;
  auto place = order.placeAt(b, block, turn);
  scores.placeBlock(place.kvHead, place.keyBlock);
  scores.setDirection(matchPattern(turn, m_Zero()) ? Value() : b.isEqual(turn, 1));
  if (order.parts > 1)
    part = place.part;
}

SmallVector<Value>
Sm90KeyRole::forEachBlock(ValueRange first, bool unrolls,
                          function_ref<CodeBuilder::Carried(Value, ValueRange)> body) {
  const KeyOrder &order = plan.order;
  Value zero = b.i32(0), turns = order.turns(b, b.block());
  auto process = [&](Value turn, ValueRange carried) {
    place(b.blockAgain(), turn);
    return body(turn, carried);
  };
  if (order.mostTurns() == 1) {
    place(b.block(), zero);
    return body(zero, first);
  }
  if (!unrolls)
    return b.loop(zero, turns, 1, first, process);
  SmallVector<Value> carried = process(zero, first);
  return b.choose(
      b.isLess(b.i32(1), turns), first.getTypes(), [&] { return process(b.i32(1), carried); },
      [&] { return carried; });
}

SmallVector<Value>
Sm90KeyRole::forEachHead(ValueRange first,
                         function_ref<CodeBuilder::Carried(Value, ValueRange)> body) {
  int64_t heads = shape.group / plan.order.parts;
  return b.loop(b.i32(0), b.i32(heads), 1, first, [&](Value head, ValueRange carried) {
    return body(part ? b.add(b.mul(part, heads), head) : head, carried);
  });
}

static void emitKeys(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config) {
  Layout layout = Layout::mmaSums(16, config.tileQueries);
  KeyScores scores(b, problem, config.blockKeys(), config.blockQueries, layout, /*wantsK=*/true,
                   /*wantsQ=*/config.addsToQ, config.tables);
  initBarriers(b, config, Places(config, problem.shape));
  Value group = b.warpgroup(), warp = b.uniform(b.warp());
  b.when(
      b.isEqual(group, 0),
      [&] {
        giveRegisters(b, config.groups);
        b.when(b.isEqual(b.thread(), 0), [&] { emitKeyProducer(b, problem, config, scores); });
        if (config.addsToQ)
          b.when(b.isEqual(warp, 1), [&] { emitQueryAdder(b, problem, config, scores); });
      },
      [&] {
        takeRegisters(b, config.groups);
        emitKeyConsumer(b, problem, config, scores, b.sub(group, b.i32(1)));
      });
}

void attention::lowerSm90Keys(const Sm80Problem &problem, const Sm90Keys &config, StringRef symbol,
                              ModuleOp entries, GpuKernel &info) {
  AttentionGradOp op = problem.op;
  const Shape &shape = problem.shape;
  Sm90KeyMaps heads(problem);
  std::vector<GpuTensorMap> maps = {
      heads.q.get(config.blockQueries), heads.dout.get(config.blockQueries),
      heads.k.get(config.blockKeys()), heads.v.get(config.blockKeys())};
  if (config.addsToQ && heads.dq.exists())
    maps.push_back(heads.dq.get(config.blockQueries));
  Sm90Builder b(op.getLoc(), op.getContext(), config.threads());
  b.enter(entries, problem.kernel, symbol, 1, /*scratch=*/true, maps.size());
  emitKeys(b, problem, config);
  b.leave();
  GpuLaunch launch{symbol.str(),
                   problem.plan.order.blocks(),
                   config.threads(),
                   Places(config, shape).bytes(),
                   {}};
  launch.maps = std::move(maps);
  launch.copyThreads = Sm90Builder::groupThreads;
  info.launches.push_back(std::move(launch));
}
