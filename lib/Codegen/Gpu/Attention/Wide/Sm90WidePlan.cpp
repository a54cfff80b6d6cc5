//===- Sm90WidePlan.cpp - Tiling of gradients in f32 with wgmma -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Of the configurations that fit, the one with the fewest clocks is chosen for dQ, one for dK and
// dV, and one for tables. If the kernel with mma.sync takes fewer clocks, it is used instead. A
// consumer thread needs these registers:
//
//   dim / 2, valueDim / 2   sums; for keys both
//   blockCols               S and dP, and for exact products
//   .. + 44                 parts of own factors, or if more
//   blockCols · 2           parts of P and dS
//   32                      addresses, lse and δ
//   4                       if the rows are keys that query heads share
//   28, 32                  values of score functions, for exact products and for others
//   56                      instead for weight_mod, whose random numbers are computed before the
//                           products
//   20                      in addition to the 56, if score_mod reads a tensor for each score:
//                           ptxas issues loads for several scores before it uses the first
//   1, 2                    a sum of contributions by head, by row; a factor of a table
//
// In the model, the steps of a warpgroup follow one another, and overlap with those of the other.
// With one buffer, copies and the warps that compute factors take turns with the products.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Ptx/SplitProducts.h"
#include "Codegen/Kernel/Attention/AttentionContributions.h"
#include "Sm90WideGradients.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;

/// Returns the clocks in which three warps process `elements`, with `issue` instructions of a lane
/// and `words` accesses of shared memory for each.
static GpuClocks factorsOf(double elements, double issue, double words) {
  constexpr double lanes = 32, wideBytes = 4;
  return {0, elements * issue / lanes / static_cast<double>(splittingWarps), 0,
          elements * words * wideBytes / GpuRates::get("sm_90a").shared};
}

static KernelClocks clocksOfSteps(const Sm90Wide &config, const Shape &shape,
                                  const FunctionWork &work) {
  constexpr double perStep = 135, ofMove = 2.5, ofPlainSplit = 1;
  const double perElement = config.addsToTables() ? 5 : 6; // dS is not converted for tables
  const GpuRates &rates = GpuRates::get("sm_90a");
  bool splits = config.splits;
  auto groups = static_cast<double>(config.groups), cols = static_cast<double>(config.blockCols),
       dim = static_cast<double>(paddedDim(shape)),
       valueDim = static_cast<double>(paddedValueDim(shape)),
       parts = static_cast<double>(config.parts()), elements = cols / 2;
  GpuClocks scores = productOfWide(cols, dim, /*leftIsShared=*/true, splits), sums, split, moved;
  double splitDims = splits ? dim : 0;
  if (config.computesGradients()) {
    scores += productOfWide(cols, valueDim, /*leftIsShared=*/true, splits);
    splitDims += splits ? valueDim : 0;
  }
  if (config.sumsGradients()) {
    sums += productOfWide(dim, cols, /*leftIsShared=*/false, splits);
    moved += factorsOf(cols * dim, parts * ofMove, 2 * parts);
  }
  if (config.sumsV()) {
    sums += productOfWide(valueDim, cols, /*leftIsShared=*/false, splits);
    bool alsoSplits = splits && !config.computesGradients();
    moved += factorsOf(cols * valueDim, parts * ofMove + (alsoSplits ? clocksOfSplit : 0),
                       alsoSplits ? 3 : 2 * parts);
  }
  split = factorsOf(cols * splitDims, clocksOfSplit + ofPlainSplit, 3);
  auto step = [&](const OpWork &functions) {
    GpuClocks weights{0, elements * (perElement + functions.issue) + perStep,
                      64 * cols * (1 + functions.special) / rates.special, 0};
    StepClocks step;
    step.units = scores;
    step.units += sums;
    step.units += weights;
    step.units = step.units * groups;
    step.units += split;
    step.units += moved;
    copyToShared(step.units, cols * (dim + valueDim) * Sm90WidePlaces::elementBytes);
    step.clocks = std::max(step.units.longest(), scores.longest() + weights.longest() +
                                                     sums.longest() + GpuLatencies::barrier);
    if (config.stages == 1)
      step.clocks = std::max({step.clocks,
                              GpuLatencies::cache + split.longest() + (scores * groups).longest(),
                              moved.longest() + (sums * groups).longest()});
    return step;
  };
  OpWork masked = work.score;
  masked += work.mask;
  KernelClocks clocks{step(work.score), step(masked)};
  clocks.blockClocks = 2 * GpuLatencies::global + split.longest();
  return clocks;
}

Sm80Work attention::workOf(AttentionGradOp op, const Sm90Wide &config, const GpuTarget &target) {
  AttentionPass pass = config.pass;
  Shape shape = getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType());
  return workOf(pass, AttentionTiles(op), clocksOfSteps(config, shape, workOfFunctions(op, pass)),
                config.blockRows(), config.blockCols, 1, shape,
                op.getQ().getType().getElementType(), target);
}

/// Returns the number of registers for contributions to captured tensors.
static int64_t registersOfContributions(AttentionPass pass, AttentionGradOp op) {
  int64_t count = 0;
  for (const Contributed &c : collectContributions(op)) {
    bool isOfPass = pass == AttentionPass::Tables    ? c.where == Dependence::Both
                    : pass == AttentionPass::Queries ? c.where != Dependence::Column
                                                     : c.where == Dependence::Column;
    bool isOne = pass == AttentionPass::Queries && c.where != Dependence::Row;
    if (isOfPass && pass != AttentionPass::KeysOfV)
      count += isOne ? 1 : 2;
  }
  return count;
}

/// Returns true if a function reads a captured tensor at indices that depend on query and key.
static bool readsForEachElement(Region &function) {
  RegionDependence dependences(function);
  return llvm::any_of(function.getOps<tensor::ExtractOp>(), [&](tensor::ExtractOp op) {
    return dependences.of(op.getResult()) == Dependence::Both;
  });
}

static int64_t registersOf(const Sm90Wide &config, const Shape &shape, AttentionGradOp op) {
  int64_t sums = ((config.sumsGradients() ? paddedDim(shape) : 0) +
                  (config.sumsV() ? paddedValueDim(shape) : 0)) /
                 2;
  bool mixes = !op.getWeightMod().empty(),
       any = mixes || !op.getScoreMod().empty() || readsTensors(op.getMaskMod());
  int64_t cols = config.blockCols, products = config.splits ? std::max(cols + 44, 2 * cols) : cols;
  int64_t functions = mixes ? 56 : any ? (config.splits ? 28 : 32) : 0;
  if (mixes && readsForEachElement(op.getScoreMod()))
    functions += 20;
  return sums + products + 32 + (config.ownsKeys() && shape.group > 1 ? 4 : 0) + functions +
         registersOfContributions(config.pass, op);
}

namespace {
struct Choice {
  std::optional<Sm90Wide> config;
  double clocks = 0; ///< of the kernel with wgmma, or of that with mma.sync if there is none
};
} // namespace

/// Returns the configuration that fits and takes the fewest clocks, if these are fewer than `most`.
static Choice choose(AttentionPass pass, AttentionGradOp op, const Shape &shape, double most,
                     const GpuTarget &target) {
  Choice best{std::nullopt, most};
  Sm90Wide config{pass, target.f32Products == F32Products::Exact};
  int64_t rows = config.ownsKeys() ? shape.cols : shape.rows;
  for (int64_t groups : {2, 1})
    for (int64_t cols : {64, 32, 16})
      for (int64_t stages : {2, 1}) {
        config.groups = groups;
        config.blockCols = cols;
        config.stages = stages;
        if ((groups > 1 && rows <= Sm90Builder::groupRows) ||
            registersOf(config, shape, op) >
                registersOfRoles(groups, wideFactorRegisters).consumer ||
            Sm90WidePlaces(config, shape).bytes() > target.sharedPerBlock)
          continue;
        Sm80Work work = workOf(op, config, target);
        double clocks = config.ownsKeys() ? costOf(work, chooseKeyOrder(work)).clocks
                                          : costOf(work, attention::chooseQueryOrder(work)).clocks;
        if (clocks < best.clocks)
          best = {config, clocks};
      }
  return best;
}

void attention::chooseSm90Wide(Sm80Backward &plan, AttentionGradOp op, const GpuTarget &target,
                               function_ref<double(AttentionPass)> clocksOfMma, double normClocks) {
  for (Value tensor : {op.getQ(), op.getK(), op.getV(), op.getDout(), op.getO()})
    if (!target.hasWarpgroups() || !getElementTypeOrSelf(tensor).isF32() ||
        !hasTensorMap(cast<RankedTensorType>(tensor.getType())))
      return;
  Shape shape = getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType());
  auto of = [&](AttentionPass pass, double most) { return choose(pass, op, shape, most, target); };
  bool isOne = plan.keys.size() == 1;
  constexpr double never = std::numeric_limits<double>::infinity();
  auto mostOf = [&](AttentionPass pass) {
    return isOne == (pass == AttentionPass::Keys) ? clocksOfMma(pass) : never;
  };
  double queriesOfMma = clocksOfMma(AttentionPass::Queries),
         keysOfMma = isOne ? mostOf(AttentionPass::Keys)
                           : mostOf(AttentionPass::KeysOfK) + mostOf(AttentionPass::KeysOfV);
  Choice queries = of(AttentionPass::Queries, queriesOfMma),
         keys = of(AttentionPass::Keys, mostOf(AttentionPass::Keys)),
         forK = of(AttentionPass::KeysOfK, mostOf(AttentionPass::KeysOfK)),
         forV = of(AttentionPass::KeysOfV, mostOf(AttentionPass::KeysOfV));
  Choice tables;
  double tablesOfMma = 0;
  if (llvm::any_of(collectContributions(op),
                   [](const Contributed &c) { return c.where == Dependence::Both; })) {
    tablesOfMma = clocksOfMma(AttentionPass::Tables);
    tables = of(AttentionPass::Tables, tablesOfMma);
  }
  bool together = keys.clocks <= forK.clocks + forV.clocks;
  double clocks =
      queries.clocks + tables.clocks + (together ? keys.clocks : forK.clocks + forV.clocks);
  if (clocks + normClocks >= queriesOfMma + tablesOfMma + keysOfMma)
    return;
  plan.wideQueries = queries.config;
  plan.wideTables = tables.config;
  SmallVector<Choice> chosen = {keys};
  if (!together)
    chosen = {forK, forV};
  for (const Choice &choice : chosen)
    if (choice.config)
      plan.wideKeys.push_back(*choice.config);
  // Copies of lse and δ begin at a multiple of the size of a block.
  constexpr int64_t mostCols = 64;
  plan.placeNorms(shape, llvm::alignTo(shape.rows, mostCols));
}
