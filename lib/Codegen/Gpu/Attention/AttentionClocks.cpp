//===- AttentionClocks.cpp - Clocks of the attention kernels ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A product of a warpgroup multiplies 64 rows by `cols` columns, 16 values of k at a time. The
// right factor is in shared memory. The left factor is in shared memory or in registers. mma.sync
// multiplies 16 rows by 8 columns, from registers that ldmatrix loads, 512 bytes at a time.
//
// In a step in which each thread has E score elements, a warp issues these numbers of instructions,
// without the instructions of the score functions:
//
//   forward    4.5 E      maximum, scale, exponential, sum, half a conversion
//              O          correction of O, per register
//   backward   6 E        scale, limit, exponential, dP - δ, dS, two halves of a conversion
//              dQ / 4     stores of dQ, per register
//   both       products, and a fixed number: barriers, maxima across lanes, addresses, lse and δ
//
// test/Codegen/Gpu/clocks.test compares their sums with what ptxas generates.
//
// In the forward kernel with wgmma, the products of one warpgroup overlap with the exponentials of
// another warpgroup, and with its own product for O. The time of a step is the larger of two times.
// The first time is the time of the busiest unit. The second time is the time of one warpgroup's
// product for S, plus the time of its exponentials or of its product for O, whichever is longer.
//
// In f32, an instruction has 8 values of k at half of the rate. For exact products there are three
// of them, a thread splits its words of Q and P, and three warps split K and Vᵀ (Sm90Forward.cpp).
// With one buffer, these warps and the product that reads the buffer take turns.
//
// In the backward kernel with wgmma, the product for dP runs while P is computed, if there is
// neither score_mod nor weight_mod. The tensor cores are idle while dS is computed, because all
// warpgroups synchronise before the other products. If warpgroups share keys, P and dS go through
// shared memory, and products read both factors there.
//
// In kernels with mma.sync, a warp multiplies and computes in turn, and other warps of its
// scheduler overlap with it.
//
//===----------------------------------------------------------------------===//

#include "AttentionClocks.h"
#include "Codegen/Gpu/Ptx/SplitProducts.h"
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

void attention::copyToShared(GpuClocks &clocks, double bytes) {
  moveShared(clocks, bytes);
  clocks.cache += bytes / GpuRates::get("sm_90a").cache;
}

double KernelClocks::run(const BlockVisits &visits, GpuClocks &all) const {
  auto free = static_cast<double>(visits.free), masked = static_cast<double>(visits.count()) - free;
  all += freeStep.units * free;
  all += maskedStep.units * masked;
  return blockClocks + free * freeStep.clocks + masked * maskedStep.clocks;
}

TensorBytes::TensorBytes(const Shape &shape, Type element) {
  double bytes = element.getIntOrFloatBitWidth() / 8.0,
         queries = toDouble(shape.batch * shape.heads * shape.rows),
         keys = toDouble(shape.batch * shape.kvHeads * shape.cols);
  q = queries * toDouble(shape.dim) * bytes;
  o = queries * toDouble(shape.valueDim) * bytes;
  k = keys * toDouble(shape.dim) * bytes;
  v = keys * toDouble(shape.valueDim) * bytes;
  norms = queries * sumBytes;
}

GpuClocks attention::productOfWide(double cols, double k, bool leftIsShared, bool splits) {
  constexpr double stepOfF32 = 8, perProduct = 4, wideBytes = 4;
  const GpuRates &rates = GpuRates::get("sm_90a");
  double products = splits ? 3 : 1, perWord = splits ? clocksOfSplit : leftIsShared ? 0 : 1;
  GpuClocks clocks{groupRows * cols * k * products / (rates.warpgroupMacs / 2),
                   k / stepOfF32 * products * perProduct + groupRows * k / groupThreads * perWord,
                   0, cols * k * products * wideBytes / rates.shared};
  if (leftIsShared) {
    clocks.issue += splits ? k / stepOfF32 : 0; // ldmatrix
    moveShared(clocks, groupRows * k * wideBytes);
  }
  return clocks;
}

/// Returns the clocks of a product in the forward pass, whose left factor is Q in shared memory or
/// P in registers.
static GpuClocks productOf(double cols, double k, bool leftIsShared, const Sm90Config &config) {
  return config.isWide ? productOfWide(cols, k, leftIsShared, config.splits)
                       : productOf(cols, k, leftIsShared);
}

/// Returns the clocks in which the warps that compute factors of f32 process `elements` of K, or of
/// V, which they transpose.
static GpuClocks factorsOf(double elements, bool transposes, const Sm90Config &config) {
  constexpr double lanes = 32, wideBytes = 4;
  if (!config.isWide || (!config.splits && !transposes))
    return {};
  double perElement = (config.splits ? clocksOfSplit : 0) + (transposes ? 2.5 : 1);
  GpuClocks clocks{0, elements * perElement / lanes / toDouble(splittingWarps)};
  moveShared(clocks, elements * wideBytes * (config.splits ? 3 : 2));
  return clocks;
}

KernelClocks attention::clocksOf(const Sm90Config &config, const Shape &shape,
                                 const FunctionWork &work) {
  constexpr double perElement = 4.5, perStep = 95, rowShuffles = 100, lanes = 32;
  const GpuRates &rates = GpuRates::get("sm_90a");
  double groups = toDouble(config.groups), cols = toDouble(config.blockCols),
         dim = toDouble(paddedDim(shape)), valueDim = toDouble(paddedValueDim(shape)),
         elements = groupRows * cols / groupThreads;
  GpuClocks scores = productOf(cols, dim, true, config),
            sums = productOf(valueDim, cols, false, config),
            keyFactors = factorsOf(cols * dim, false, config),
            valueFactors = factorsOf(cols * valueDim, true, config);
  auto step = [&](OpWork functions) {
    // Each scheduler issues the instructions of one warp of each warpgroup.
    GpuClocks softmax{0, elements * (perElement + functions.issue) + valueDim / 2 + perStep,
                      groupRows * cols * (1 + functions.special) / rates.special, 0};
    StepClocks step;
    step.units = scores;
    step.units += sums;
    step.units += softmax;
    step.units = step.units * groups;
    step.units += keyFactors;
    step.units += valueFactors;
    copyToShared(step.units, cols * (dim + valueDim) * toDouble(config.elementBytes()));
    // A warp first needs the maximum of its row, then exponentials, then their conversion.
    double alone = std::max(softmax.issue,
                            elements * 1.5 * lanes / rates.compare + rowShuffles + softmax.special);
    step.clocks =
        std::max(step.units.longest(),
                 scores.longest() + std::max(sums.longest(), alone) + GpuLatencies::barrier);
    if (config.keyStages == 1)
      step.clocks = std::max(step.clocks, GpuLatencies::cache + keyFactors.longest() +
                                              (scores * groups).longest());
    if (config.valueStages == 1)
      step.clocks = std::max(step.clocks, valueFactors.longest() + (sums * groups).longest());
    return step;
  };
  KernelClocks clocks;
  clocks.freeStep = step(work.score);
  OpWork masked = work.score;
  masked += work.mask;
  clocks.maskedStep = step(masked);
  // The first product Q · Kᵀ of a block of queries and the last product P · V do not overlap with
  // other work.
  clocks.blockClocks = clocks.freeStep.clocks + groupRows * valueDim / groupThreads * 2;
  if (config.isWide)
    clocks.launchClocks = 2 * GpuLatencies::global + keyFactors.longest();
  return clocks;
}

Sm90KeyClocks attention::clocksOf(const Sm90Keys &config, const Shape &shape,
                                  const FunctionWork &work) {
  constexpr double ofGradients = 2.5, perTile = 135; // per element, of dS alone; per tile
  const double perElement = config.tables ? 5 : 6;   // dS and P are not converted for tables
  const GpuRates &rates = GpuRates::get("sm_90a");
  double groups = toDouble(config.groups), queries = toDouble(config.blockQueries),
         tile = toDouble(config.tileQueries), keys = toDouble(config.blockKeys()),
         dim = toDouble(paddedDim(shape.dim)), valueDim = toDouble(paddedDim(shape.valueDim));
  bool shares = config.sharesKeys;
  QuerySums querySums(config, shape);
  double slices = toDouble(querySums.slices), sums = 0; // columns of dQ of the first warpgroup
  GpuClocks scores = productOf(tile, dim, true), cotangents = productOf(tile, valueDim, true),
            gradients = productOf(valueDim, queries, shares); // of all warpgroups
  gradients += productOf(dim, queries, shares);
  gradients = gradients * (config.tables ? 0 : shares ? 1 : groups);
  for (int64_t slice = 0; config.addsToQ && slice < querySums.slices; ++slice) {
    sums += toDouble(querySums.colsOf(slice, 0));
    for (int64_t group = 0; group < config.groups; ++group)
      gradients += productOf(toDouble(querySums.colsOf(slice, group)), keys, true);
  }
  auto step = [&](OpWork functions) {
    double elements = groupRows * tile / groupThreads;
    // Of these instructions, those of dS follow the product for dP.
    GpuClocks last{0, work.isPlain ? elements * ofGradients : 0};
    GpuClocks exponentials{0, elements * (perElement + functions.issue) + perTile + sums / 2 / 4,
                           groupRows * tile * (1 + functions.special) / rates.special, 0};
    double tiles = queries / tile / (shares ? groups : 1); // of a warpgroup
    StepClocks step;
    step.units = scores * tiles;
    step.units += cotangents * tiles;
    step.units += exponentials * tiles;
    step.units = step.units * groups;
    step.units += gradients;
    // What one unit does while others wait, tile by tile.
    double waiting = config.tables ? 1 : groups; // without barriers, warpgroups overlap
    double products = (cotangents * waiting).longest(), before = (exponentials * waiting).longest();
    double alone = (scores * waiting).longest() +
                   (work.isPlain ? std::max(products, before - (last * waiting).longest()) +
                                       (last * waiting).longest()
                                 : products + before);
    step.clocks = alone * tiles + gradients.longest();
    copyToShared(step.units, queries * (dim + valueDim) * elementBytes);
    if (config.addsToQ || shares)
      moveShared(step.units, keys * queries * elementBytes * (shares ? 2 : 1)); // dS, or P and dS
    if (config.addsToQ) {
      moveShared(step.units, queries * dim * sumBytes);
      copyToShared(step.units, queries * dim * sumBytes); // to the sums in global memory
    }
    step.clocks += (config.addsToQ ? 1 + slices : shares ? 1 : 0) * GpuLatencies::barrier;
    step.clocks = std::max(step.clocks, step.units.longest());
    return step;
  };
  Sm90KeyClocks clocks;
  clocks.freeStep = step(work.score);
  OpWork masked = work.score;
  masked += work.mask;
  clocks.maskedStep = step(masked);
  double results = keys * (dim + valueDim);
  clocks.blockClocks = GpuLatencies::global + 2 * results * elementBytes / rates.cache;
  clocks.partClocks = GpuLatencies::addition + 2 * results * sumBytes / rates.cache;
  clocks.addClocks = GpuLatencies::addition + queries * dim * sumBytes / rates.cache;
  clocks.loadClocks = GpuLatencies::cache + queries * dim * sumBytes / rates.cache;
  // An addition, a product and half a conversion for each register of dQ, and stores. The product
  // for dK runs at the same time.
  constexpr double ofRounding = 2.5, perRounding = 40;
  clocks.roundClocks =
      std::max(groups * (sums / 2 * ofRounding + perRounding) -
                   (productOf(dim, queries, shares) * (shares ? 1 : groups)).longest(),
               0.0);
  // A slice is loaded after the previous one has been rounded.
  clocks.roundClocks += (slices - 1) * clocks.loadClocks / slices;
  return clocks;
}

namespace {
/// Products of a pair of blocks, as multiples of its rows and columns: sums of head dimensions.
struct Sm80Products {
  double dims;    ///< of all products
  double loads;   ///< of the factors that ldmatrix loads from the visited block
  double results; ///< of the sums that are corrected in each step
  double perElement, perStep;
};
} // namespace

static Sm80Products productsOf(AttentionPass pass, double dim, double valueDim) {
  constexpr double forward = 4.5, backward = 6;
  switch (pass) {
  case AttentionPass::Forward:
    return {dim + valueDim, dim + valueDim, valueDim, forward, 80};
  case AttentionPass::Queries:
    return {2 * dim + valueDim, 2 * dim + valueDim, 0, backward, 40};
  case AttentionPass::Tables:
    return {dim + valueDim, dim + valueDim, 0, backward - 1, 40};
  case AttentionPass::Keys:
    return {2 * (dim + valueDim), 2 * (dim + valueDim), 0, backward, 65};
  case AttentionPass::KeysOfK:
    return {2 * dim + valueDim, 2 * dim + valueDim, 0, backward, 65};
  case AttentionPass::KeysOfV:
    return {dim + valueDim, dim + valueDim, 0, backward - 2, 65};
  }
  llvm_unreachable("all passes are above");
}

/// Clocks of a step while `config.blocksPerSm` blocks share the multiprocessor.
static StepClocks stepOfSm80(const Sm80Products &products, const Sm80Config &config, double dims,
                             Type element, const OpWork &functions, const GpuTarget &target) {
  constexpr double schedulers = 4, lanes = 32, mmaMacs = 16 * 8 * 16, matrixBytes = 512,
                   perSplit = 6, perRounding = 1;
  const GpuRates &rates = GpuRates::get(target.chip);
  bool isWide = element.isF32(), isSplit = isWide && target.f32Products == F32Products::Exact;
  double rows = toDouble(config.blockRows()), cols = toDouble(config.blockCols),
         warps = toDouble(config.warps), bytes = isWide ? 4 : 2,
         resident = toDouble(config.blocksPerSm), elements = rows / warps * cols / lanes;
  // In f32, products have half as many values of k. There are three of them, of factors that are
  // split before, or one of factors that are rounded before.
  double macs = rows * cols * products.dims * (isSplit ? 3 : 1),
         loaded = cols * products.loads * bytes + rows / warps * dims * bytes;
  double issue = elements * (products.perElement + functions.issue) +
                 rows / warps * products.results / lanes +
                 macs / warps / mmaMacs * (isWide ? 2 : 1) + loaded / matrixBytes +
                 (isWide ? loaded / sumBytes / lanes * (isSplit ? perSplit : perRounding) : 0) +
                 products.perStep;
  StepClocks step;
  step.units = {macs / (isWide ? rates.tf32Macs : rates.macs), issue * warps / schedulers,
                rows * cols * (1 + functions.special) / rates.special,
                (loaded * warps + cols * dims * bytes) / rates.shared,
                cols * dims * bytes / rates.cache};
  double warpsOfScheduler = std::max(warps / schedulers, 1.0);
  step.clocks = std::max(resident * step.units.longest(),
                         step.units.tensor / warpsOfScheduler + issue + 2 * GpuLatencies::barrier);
  return step;
}

/// Bytes of memory that a kernel moves.
static double bytesOf(AttentionPass pass, const TensorBytes &bytes) {
  double all = bytes.q + bytes.k + bytes.v + bytes.o + bytes.norms;
  switch (pass) {
  case AttentionPass::Forward:
    return all;
  case AttentionPass::Queries:
    return all + bytes.q + bytes.o + 2 * bytes.norms;
  case AttentionPass::Tables:
    return all + bytes.o;
  case AttentionPass::Keys:
    return all + bytes.norms + bytes.k + bytes.v;
  case AttentionPass::KeysOfK:
    return all + bytes.norms + bytes.k;
  case AttentionPass::KeysOfV:
    return all + bytes.norms + bytes.v;
  }
  llvm_unreachable("all passes are above");
}

static bool ownsQueries(AttentionPass pass) {
  return pass == AttentionPass::Forward || pass == AttentionPass::Queries ||
         pass == AttentionPass::Tables;
}

Sm80Work attention::workOf(AttentionPass pass, AttentionTiles tiles, const KernelClocks &clocks,
                           int64_t blockRows, int64_t blockCols, int64_t blocksPerSm,
                           const Shape &shape, Type element, const GpuTarget &target) {
  constexpr int64_t cacheBytes = INT64_C(32) << 20;
  bool queries = ownsQueries(pass);
  Sm80Work work;
  work.group = queries ? shape.group : 1;
  work.heads = shape.batch * shape.kvHeads * work.group;
  int64_t repeats = queries ? 1 : shape.group, length = queries ? shape.cols : shape.rows;
  for (const BlockVisits &visits :
       queries ? getVisits(tiles.getKeyTiles(blockCols), shape.rows, blockRows)
               : getVisits(tiles.getRowTiles(blockCols), shape.cols, blockRows)) {
    double block = 0;
    for (int64_t i = 0; i < repeats; ++i)
      block += clocks.run(visits, work.units);
    work.clocks.push_back(block);
  }
  work.units = work.units * toDouble(work.heads);
  work.bytes = bytesOf(pass, TensorBytes(shape, element));
  work.mostTogether = cacheBytes / (length * (shape.dim + shape.valueDim) * 2) * work.group;
  work.multiprocessors = target.multiprocessors;
  work.slots = target.multiprocessors * blocksPerSm;
  return work;
}

Sm80Work attention::workOf(AttentionPass pass, AttentionTiles tiles, const FunctionWork &functions,
                           const Sm80Config &config, const Shape &shape, Type element,
                           const GpuTarget &target) {
  double dim = toDouble(tile::Sm80Tiles::paddedCols(shape.dim)),
         valueDim = toDouble(tile::Sm80Tiles::paddedCols(shape.valueDim));
  Sm80Products products = productsOf(pass, dim, valueDim);
  auto step = [&](const OpWork &work) {
    return stepOfSm80(products, config, dim + valueDim, element, work, target);
  };
  OpWork masked = functions.score;
  masked += functions.mask;
  KernelClocks clocks{step(functions.score), step(masked), 2 * GpuLatencies::global};
  return workOf(pass, tiles, clocks, config.blockRows(), config.blockCols, config.blocksPerSm,
                shape, element, target);
}

QueryOrder attention::chooseQueryOrder(const Sm80Work &work) {
  int64_t tiles = work.heads * static_cast<int64_t>(work.clocks.size());
  return fsdp::chooseQueryOrder(work.heads, work.group, tiles, work.mostTogether, work.clocks,
                                work.slots);
}

GpuCost attention::costOf(const Sm80Work &work, const QueryOrder &order) {
  return getLaunchCost(scheduleQueries(order, work.clocks, work.slots), work.units,
                       work.multiprocessors, work.bytes);
}

static BlockScheduler schedule(const Sm80Work &work, const KeyOrder &order) {
  BlockScheduler scheduler(work.slots);
  Integers m;
  for (int64_t block = 0; block < order.blocks(); ++block)
    scheduler.add(work.clocks[order.placeAt(m, block, int64_t(0)).keyBlock]);
  return scheduler;
}

KeyOrder attention::chooseKeyOrder(const Sm80Work &work) {
  // The first keys first, which most queries meet under a causal mask.
  KeyOrder order{work.heads, static_cast<int64_t>(work.clocks.size())}, together;
  order.reversed = true;
  together = order;
  together.together = std::clamp<int64_t>(work.mostTogether, 1, work.heads);
  while (work.heads % together.together != 0)
    --together.together;
  return schedule(work, together).end() < schedule(work, order).end() ? together : order;
}

GpuCost attention::costOf(const Sm80Work &work, const KeyOrder &order) {
  return getLaunchCost(schedule(work, order), work.units, work.multiprocessors, work.bytes);
}
