//===- Sm90WidePlan.cpp - Tiling of gradients in f32 with wgmma -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Of the configurations that fit, the one with the fewest clocks is chosen for dQ, and one for dK
// and dV. A kernel with mma.sync remains where it takes fewer. A consumer thread needs these
// registers:
//
//   dim / 2, valueDim / 2   sums; for keys both
//   blockCols               S and dP
//   blockCols               further ones for the parts of P and dS in exact products
//   48                      addresses, parts of own factors, lse and δ
//   24                      values of score functions, if there are any
//   40                      weight_mod, whose random numbers have many values per element
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
  constexpr double perElement = 6, perStep = 135, ofMove = 2.5, ofPlainSplit = 1;
  const GpuRates &rates = GpuRates::get("sm_90a");
  auto groups = static_cast<double>(config.groups), cols = static_cast<double>(config.blockCols),
       dim = static_cast<double>(paddedDim(shape)),
       valueDim = static_cast<double>(paddedValueDim(shape)),
       parts = static_cast<double>(config.parts()), elements = cols / 2,
       turned = cols * (dim + (config.ownsKeys ? valueDim : 0));
  GpuClocks scores = productOfWide(cols, dim, /*leftIsShared=*/true, config.splits),
            sums = productOfWide(dim, cols, /*leftIsShared=*/false, config.splits),
            moved = factorsOf(turned, parts * ofMove, 2 * parts), split;
  scores += productOfWide(cols, valueDim, /*leftIsShared=*/true, config.splits);
  if (config.ownsKeys)
    sums += productOfWide(valueDim, cols, /*leftIsShared=*/false, config.splits);
  if (config.splits)
    split = factorsOf(cols * (dim + valueDim), clocksOfSplit + ofPlainSplit, 3);
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
  AttentionPass pass = config.ownsKeys ? AttentionPass::Keys : AttentionPass::Queries;
  Shape shape = getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType());
  return workOf(pass, AttentionTiles(op), clocksOfSteps(config, shape, workOfFunctions(op, pass)),
                config.blockRows(), config.blockCols, 1, shape,
                op.getQ().getType().getElementType(), target);
}

static int64_t registersOf(const Sm90Wide &config, const Shape &shape, AttentionGradOp op) {
  int64_t sums = (paddedDim(shape) + (config.ownsKeys ? paddedValueDim(shape) : 0)) / 2;
  bool mixes = !op.getWeightMod().empty(),
       any = mixes || !op.getScoreMod().empty() || readsTensors(op.getMaskMod());
  return sums + config.blockCols * config.parts() + 48 + (any ? 24 : 0) + (mixes ? 40 : 0);
}

static double clocksOfLaunch(const Sm80Work &work, bool ownsKeys) {
  return ownsKeys ? costOf(work, chooseKeyOrder(work)).clocks
                  : costOf(work, attention::chooseQueryOrder(work)).clocks;
}

namespace {
struct Choice {
  std::optional<Sm90Wide> config;
  double gain = 0; ///< clocks that the kernels with mma.sync take in addition
};
} // namespace

/// Returns the configuration that fits and takes the fewest clocks, if these are fewer than `most`.
static Choice choose(bool ownsKeys, AttentionGradOp op, const Shape &shape, double most,
                     const GpuTarget &target) {
  Choice best;
  Sm90Wide config{ownsKeys, target.f32Products == F32Products::Exact, 0, 0, 0};
  int64_t rows = ownsKeys ? shape.cols : shape.rows;
  for (int64_t groups : {2, 1})
    for (int64_t cols : {64, 32})
      for (int64_t stages : {2, 1}) {
        config.groups = groups;
        config.blockCols = cols;
        config.stages = stages;
        if ((groups > 1 && rows <= Sm90Builder::groupRows) ||
            registersOf(config, shape, op) > registersOfRoles(groups, true).consumer ||
            Sm90WidePlaces(config, shape).bytes() > target.sharedPerBlock)
          continue;
        double gain = most - clocksOfLaunch(workOf(op, config, target), ownsKeys);
        if (gain > best.gain)
          best = {config, gain};
      }
  return best;
}

void attention::chooseSm90Wide(Sm80Backward &plan, AttentionGradOp op, const GpuTarget &target,
                               double mmaQueries, double mmaKeys, double normClocks) {
  for (Value tensor : {op.getQ(), op.getK(), op.getV(), op.getDout(), op.getO()})
    if (!target.hasWarpgroups() || !getElementTypeOrSelf(tensor).isF32() ||
        !hasTensorMap(cast<RankedTensorType>(tensor.getType())))
      return;
  // Sums of contributions to captured tensors are left to the kernels with mma.sync.
  if (!collectContributions(op).empty())
    return;
  Shape shape = getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType());
  Choice queries = choose(/*ownsKeys=*/false, op, shape, mmaQueries, target),
         keys = choose(/*ownsKeys=*/true, op, shape, mmaKeys, target);
  if (queries.gain + keys.gain <= normClocks)
    return;
  plan.wideQueries = queries.config;
  plan.wideKeys = keys.config;
  // Copies of lse and δ begin at a multiple of the size of a block.
  constexpr int64_t mostCols = 64;
  plan.placeNorms(shape, llvm::alignTo(shape.rows, mostCols));
}
