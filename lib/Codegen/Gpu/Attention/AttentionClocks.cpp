//===- AttentionClocks.cpp - Clocks of the attention kernels ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A product of a warpgroup multiplies 64 rows by `cols` columns, 16 values of k at a time. The
// right factor is in shared memory. The left factor is in shared memory or in registers.
//
// In a step in which each thread has E score elements, a warp issues these numbers of instructions,
// without the instructions of the score functions:
//
//   forward    4.5 E    maximum, scale, exponential, sum, half a conversion
//              O / 2    correction of O
//              95       barriers, maxima across lanes, addresses
//   backward   7 E      scale, log2 e, limit, exponential, dP - δ, dS, two halves of a conversion
//              dQ / 4   stores of dQ
//              135      barriers, lse and δ, addresses, stores of dS
//   both       one per product of 16 values of k
//
// test/Codegen/Gpu/issue-model.test compares the totals with the output of ptxas.
//
// Forward: the products of one warpgroup overlap with the exponentials of another warpgroup. The
// time of a step is the larger of two times. The first time is that of the busiest unit. The second
// time is that of one warpgroup's products plus that of its exponentials. Backward: all warpgroups
// synchronise after the products S and dP and before the other products. Therefore the tensor cores
// are idle while P and dS are computed.
//
//===----------------------------------------------------------------------===//

#include "AttentionClocks.h"
#include "Sm90Backward.h"
#include "Sm90Roles.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;

static constexpr double elementBytes = 2, sumBytes = 4, groupRows = Sm90Builder::groupRows,
                        groupThreads = Sm90Builder::groupThreads, stepOfK = 16;

static double toDouble(int64_t value) { return static_cast<double>(value); }

/// Returns the clocks of a warpgroup's product, which takes one instruction per 16 values of k.
static GpuClocks productOf(double cols, double k, bool leftIsShared) {
  const GpuRates &rates = GpuRates::get("sm_90a");
  double bytes = (cols + (leftIsShared ? groupRows : 0)) * k * elementBytes;
  return {groupRows * cols * k / rates.warpgroupMacs, k / stepOfK, 0, bytes / rates.shared};
}

/// Adds the clocks for `bytes` bytes that are written to or read from shared memory.
static void moveShared(GpuClocks &clocks, double bytes) {
  clocks.shared += bytes / GpuRates::get("sm_90a").shared;
}

Sm90ForwardClocks attention::clocksOf(const Sm90Config &config, const Shape &shape,
                                      const FunctionWork &work) {
  constexpr double perElement = 4.5, perStep = 95;
  const GpuRates &rates = GpuRates::get("sm_90a");
  double groups = toDouble(config.groups), cols = toDouble(config.blockCols),
         dim = toDouble(paddedDim(shape)), valueDim = toDouble(paddedValueDim(shape)),
         elements = groupRows * cols / groupThreads;
  GpuClocks products = productOf(cols, dim, true);
  products += productOf(valueDim, cols, false);
  auto step = [&](ElementWork functions) {
    // Each scheduler issues the instructions of one warp of each warpgroup.
    GpuClocks softmax{0, elements * (perElement + functions.issue) + valueDim / 2 + perStep,
                      groupRows * cols * (1 + functions.special) / rates.special, 0};
    StepClocks step;
    step.units = products;
    step.units += softmax;
    step.units = step.units * groups;
    moveShared(step.units, cols * (dim + valueDim) * elementBytes);
    step.clocks = std::max(step.units.longest(),
                           products.longest() + softmax.longest() + GpuLatencies::barrier);
    return step;
  };
  Sm90ForwardClocks clocks;
  clocks.freeStep = step(work.score);
  ElementWork masked = work.score;
  masked += work.mask;
  clocks.maskedStep = step(masked);
  // The first product Q · Kᵀ of a block of queries and the last product P · V do not overlap with
  // other work.
  clocks.tileClocks = clocks.freeStep.clocks + groupRows * valueDim / groupThreads * 2;
  return clocks;
}

Sm90KeyClocks attention::clocksOf(const Sm90Keys &config, const Shape &shape,
                                  const FunctionWork &work) {
  constexpr double perElement = 7, perTile = 135;
  const GpuRates &rates = GpuRates::get("sm_90a");
  double groups = toDouble(config.groups), queries = toDouble(config.blockQueries),
         tile = toDouble(config.tileQueries), keys = toDouble(config.blockKeys()),
         dim = toDouble(paddedDim(shape.dim)), valueDim = toDouble(paddedDim(shape.valueDim));
  double sums = config.addsToQ ? toDouble(QuerySums(config, shape).cols) : 0;
  GpuClocks scores = productOf(tile, dim, true), gradients = productOf(valueDim, queries, false);
  scores += productOf(tile, valueDim, true);
  gradients += productOf(dim, queries, false);
  if (config.addsToQ)
    gradients += productOf(sums, keys, true);
  auto step = [&](ElementWork functions) {
    double elements = groupRows * tile / groupThreads;
    GpuClocks exponentials{0, elements * (perElement + functions.issue) + perTile + sums / 2 / 4,
                           groupRows * tile * (1 + functions.special) / rates.special, 0};
    double tiles = queries / tile;
    StepClocks step;
    step.units = gradients;
    step.units += scores * tiles;
    step.units += exponentials * tiles;
    step.units = step.units * groups;
    // The times of the products and of the exponentials are added, because they do not overlap.
    double alone = (scores * groups).longest() + (exponentials * groups).longest();
    step.clocks = alone * tiles + (gradients * groups).longest();
    moveShared(step.units, queries * (dim + valueDim) * elementBytes);
    if (config.addsToQ) {
      moveShared(step.units, keys * queries * elementBytes + 2 * queries * dim * sumBytes);
      step.clocks += 3 * GpuLatencies::barrier;
    }
    step.clocks = std::max(step.clocks, step.units.longest());
    return step;
  };
  Sm90KeyClocks clocks;
  clocks.freeStep = step(work.score);
  ElementWork masked = work.score;
  masked += work.mask;
  clocks.maskedStep = step(masked);
  double results = keys * (dim + valueDim);
  clocks.blockClocks = GpuLatencies::global + 2 * results * elementBytes / rates.global;
  clocks.partClocks = GpuLatencies::addition + 2 * results * sumBytes / rates.global;
  clocks.addClocks = GpuLatencies::addition + queries * dim * sumBytes / rates.global;
  return clocks;
}
