//===- GpuGemmPlan.cpp - Tiling of a contraction on GPUs --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//                blockCols                 a block of threads computes a tile of the result,
//               +---------+                a warp a part of it in registers; factors are
//        blockK |   rhs   |                copied to shared memory, blockK at a time
//   +---+       +----+----+
//   |lhs|       |warp|    | blockRows
//   |   |       +----+----+
//   +---+       |    |    |
//               +----+----+
//
// 1. Chooses the cheapest tile for mma.sync that fits the chip, and the cheapest number of equal
//    parts of k. The cost of a tile has three terms. The first term is the time of the
//    multiply-adds or of the loads, whichever is longer. The second term is a fraction of the
//    shorter time. The third term is the time before and after the loop. The cost of a launch is
//    the cost of a tile times the number of rounds that the multiprocessors need for all tiles.
// 2. Compares this tile with those for wgmma, by the clocks of the model of GpuGemmClocks.cpp. With
//    wgmma, if there are fewer tiles than multiprocessors, k can be divided into unequal parts,
//    such that all multiprocessors have work (PartOrder.h). The clocks include the launches that
//    copy factors and that add the parts of k.
//
// If the kernel has the attribute `fsdp.gemm_tile` ("128x64"), the attribute selects the tile and
// the parts instead.
//
// A thread needs registers for its sums and for the factors of mma. Split factors of f32 need twice
// as many registers. A thread also needs two registers per copy, and 48 for addresses and bounds.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Ptx/Sm90Builder.h"
#include "GpuGemm.h"
#include "fsdp/Analysis/Gpu/GpuClocks.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

/// Each row lists the rows, columns and k of a block, the rows and columns of a warp, the number of
/// stages, and the blocks per multiprocessor.
static const GpuConfig table16[] = {
    {128, 256, 32, 64, 64, 4, 1}, {128, 128, 32, 64, 64, 4, 2}, {128, 64, 32, 64, 32, 4, 2},
    {64, 128, 32, 32, 64, 4, 2},  {64, 64, 32, 32, 32, 4, 3},   {32, 64, 32, 16, 32, 4, 4},
    {64, 32, 32, 32, 16, 4, 4},   {32, 32, 32, 16, 16, 4, 4},
};
/// Configurations for kernels with wgmma, in which each warpgroup has 64 rows. The last column is
/// the cluster size.
static const GpuConfig tableGroups[] = {
    {128, 256, 64, 16, 256, 4, 1, true},    {128, 256, 64, 16, 256, 4, 1, true, 2},
    {128, 192, 64, 16, 192, 4, 1, true},    {128, 128, 64, 16, 128, 6, 1, true},
    {128, 128, 64, 16, 128, 6, 1, true, 2}, {128, 64, 64, 16, 64, 8, 1, true}};
/// Stages of split factors also hold the low parts of rhs.
static const GpuConfig tableSplitGroups[] = {
    {128, 256, 64, 16, 256, 2, 1, true},    {128, 256, 64, 16, 256, 2, 1, true, 2},
    {128, 192, 64, 16, 192, 3, 1, true},    {128, 128, 64, 16, 128, 4, 1, true},
    {128, 128, 64, 16, 128, 4, 1, true, 2}, {128, 64, 64, 16, 64, 6, 1, true}};
static const GpuConfig table32[] = {
    {128, 64, 16, 32, 32, 4, 1}, {64, 64, 16, 32, 32, 4, 2}, {32, 32, 16, 16, 16, 4, 4}};
static const GpuConfig tableTF32[] = {{128, 128, 16, 64, 64, 4, 2},
                                      {128, 64, 16, 64, 32, 4, 2},
                                      {64, 64, 16, 32, 32, 4, 3},
                                      {32, 32, 16, 16, 16, 4, 4}};

static ArrayRef<GpuConfig> groupTiles(const GpuPlan &plan) {
  return plan.isSplit() ? ArrayRef(tableSplitGroups) : ArrayRef(tableGroups);
}

static constexpr int64_t splitCounts[] = {1, 2, 3, 4, 6, 8, 12, 16};
/// Minimum number of tiles of k that a part has if k is split.
static constexpr int64_t minSplitBlocks = 8;
/// Number of larger sizes of unequal parts that are tried.
static constexpr int64_t moreSteps = 5;
/// In the model, an additional launch takes `launchCycles` cycles. A tile takes `tileCycles` cycles
/// before and after its loop.
static constexpr double launchCycles = 4000, tileCycles = 1500;
/// In the model, a multiprocessor does `macsPerCycle` multiply-adds per cycle by mma. It loads
/// `bytesPerCycle` or stores `bytesOutPerCycle` bytes per cycle.
static constexpr double macsPerCycle = 1024, bytesPerCycle = 48, bytesOutPerCycle = 12;
static constexpr int64_t chunkBytes = 16;

static int64_t bytesOf(Type type) {
  return std::max<int64_t>(getStorageType(type).getIntOrFloatBitWidth() / 8, 1);
}

int64_t GpuPlan::sharedBytes() const {
  if (config.warpgroups)
    return config.stages * (stageBytes() + barriersPerStage() * Sm90Builder::barrierBytes) +
           config.blockRows / 64 * groupBytes + (sums ? factorSumBytes : 0);
  return std::max(config.stages * stageBytes(), config.blockRows * sumsPitch());
}

/// Chooses the type of the factors in shared memory.
static FailureOr<Type> chooseElement(const Problem &problem, std::string &reason) {
  Type lhs = getValueType(problem.lhs.access), rhs = getValueType(problem.rhs.access);
  Type result = getElementTypeOrSelf(problem.root().getType()),
       init = getValueType(problem.init.access);
  auto isSupported = [](Type type) { return type.isF32() || type.isBF16() || type.isF16(); };
  for (Type type : {lhs, rhs, result, init})
    if (!isSupported(type)) {
      llvm::raw_string_ostream(reason) << "contractions in " << type;
      return failure();
    }
  if (lhs == rhs)
    return lhs;
  return Type(Float32Type::get(result.getContext()));
}

/// Divides the elements along digit `inner` into groups of n elements. Returns the largest power of
/// two n, at most `limit`, for which each group is contiguous in memory and aligned to the size of
/// a group.
static int64_t alignedNeighbours(const Problem &problem, const Operand &operand, int inner,
                                 int64_t limit) {
  if (operand.access.binding < 0)
    return limit;
  if (operand.strides[inner] != 1)
    return 1;
  int64_t unit = limit;
  auto divide = [&](int64_t value) {
    while (value % unit)
      unit /= 2;
  };
  divide(operand.access.offset);
  for (auto [digit, stride] : llvm::enumerate(operand.strides))
    if (static_cast<int>(digit) != inner && problem.digits[digit].size > 1)
      divide(stride);
  return unit;
}

int64_t gemm::alignedColumns(const Problem &problem, const GpuPlan &plan, const Operand &operand) {
  int64_t limit = std::min(plan.storeCols, chunkBytes / bytesOf(operand.access.elementType));
  return alignedNeighbours(problem, operand, plan.rhs.digits.back(), limit);
}

static void placeSide(const Problem &problem, const GpuPlan &plan, const Operand &operand,
                      int64_t width, GpuSide &side) {
  int kInner = plan.kInner, inner = side.digits.back();
  side.width = width;
  side.alongK =
      operand.access.binding < 0 || operand.strides[kInner] == 1 || operand.strides[inner] != 1;
  int neighbour = side.alongK ? kInner : inner;
  int64_t size = problem.digits[neighbour].size, bytes = bytesOf(plan.element);
  int64_t unit =
      alignedNeighbours(problem, operand, neighbour,
                        chunkBytes / std::max(bytes, bytesOf(operand.access.elementType)));
  side.async = operand.access.binding >= 0 && operand.access.maps.empty() &&
               operand.access.elementType == plan.element;
  // If some elements of a unit do not exist, only cp.async can copy the unit. If each row of the
  // tile belongs to one value of k, the rows (or columns) of the result must also have only one
  // digit.
  auto straddles = [&](int64_t unit) {
    return size % unit &&
           (!side.async || unit * bytes < 4 || (!side.alongK && side.digits.size() > 1));
  };
  while (straddles(unit))
    unit /= 2;
  side.unit = unit;
  side.async &= unit * bytes >= 4;
  side.tileRows = side.alongK ? width : plan.config.blockK;
  side.rowBytes = (side.alongK ? plan.config.blockK : width) * bytes;
  side.bytes = side.tileRows * side.rowBytes;
}

static void setConfig(const Problem &problem, GpuPlan &plan, const GpuConfig &config) {
  plan.config = config;
  // Rows of 128 bytes hold half as many values of f32.
  if (config.warpgroups && plan.element.isF32())
    plan.config.blockK /= 2;
  placeSide(problem, plan, plan.lhsOf(problem), config.blockRows, plan.lhs);
  placeSide(problem, plan, plan.rhsOf(problem), config.blockCols, plan.rhs);
  plan.rhs.offset = plan.lhs.bytes;
  plan.kBlocks = product(problem, plan.kOuter) * llvm::divideCeil(plan.k, plan.config.blockK);
}

int64_t gemm::estimateRegisters(const GpuPlan &plan) {
  const GpuConfig &c = plan.config;
  int64_t parts = plan.isSplit() ? 2 : 1, factors = (c.warpRows / 16 * 4 + 4) * parts, copies = 0;
  for (const GpuSide *side : {&plan.lhs, &plan.rhs})
    copies +=
        2 * std::min<int64_t>(maxUnrolledCopies,
                              side->bytes / (side->unit * bytesOf(plan.element)) / c.threads());
  return c.warpRows * c.warpCols / 32 + factors + copies + 48;
}

static bool fits(const GpuPlan &plan, const GpuTarget &target) {
  const GpuConfig &c = plan.config;
  int64_t registers =
      std::min(target.registersPerThread, target.registersPerSm / (c.threads() * c.blocksPerSm));
  int64_t shared = plan.sharedBytes();
  if (c.warpgroups)
    return target.chip == "sm_90a" && shared <= target.sharedPerBlock;
  return estimateRegisters(plan) <= registers && shared <= target.sharedPerBlock &&
         (shared + target.sharedReserved) * c.blocksPerSm <= target.sharedPerSm;
}

/// Estimates the cycles of a plan with mma.sync.
static double estimateCycles(const GpuPlan &plan, const GpuTarget &target) {
  const GpuConfig &c = plan.config;
  double steps = static_cast<double>(llvm::divideCeil(plan.kBlocks, plan.splits) * c.blockK),
         parts = plan.isSplit()         ? 6
                 : plan.element.isF32() ? 2
                                        : 1;
  double macs = static_cast<double>(c.blockRows * c.blockCols) * steps * parts / macsPerCycle;
  double loads =
      static_cast<double>((plan.lhs.bytes + plan.rhs.bytes) / c.blockK) * steps / bytesPerCycle;
  double out = static_cast<double>(c.blockRows * c.blockCols * 4) / bytesOutPerCycle;
  double rounds = static_cast<double>(llvm::divideCeil(plan.blocks(), target.multiprocessors));
  double cycles = rounds * (std::max(macs, loads) + std::min(macs, loads) / 4 + out + tileCycles);
  if (int64_t bytes = plan.partBytes(); bytes > 0)
    cycles += launchCycles + static_cast<double>(bytes) /
                                 (bytesOutPerCycle * static_cast<double>(target.multiprocessors));
  return cycles;
}

/// Estimates the clocks of a plan's launches. Of plans that take as long as global memory, the one
/// with the fewest clocks is the better one.
static std::pair<double, double> estimateClocks(const Problem &problem, const GpuPlan &plan) {
  double memory = GpuRates::get(plan.chip).memory * static_cast<double>(plan.multiprocessors);
  std::pair<double, double> sum;
  auto append = [&](const GpuCost &cost) {
    sum.first += std::max(cost.clocks, cost.bytes / memory);
    sum.second += cost.clocks;
  };
  append(costOf(problem, plan));
  if (plan.splits > 1) {
    append(costOfPartSums(problem, plan));
    sum.first += launchCycles;
  }
  for (const std::optional<PackedFactor> &packed : plan.packed)
    if (packed && plan.config.warpgroups) {
      append(costOfPack(plan, *packed));
      sum.first += launchCycles;
    }
  return sum;
}

namespace {
/// The tile and the parts of k that the attribute `fsdp.gemm_tile` selects.
struct AskedPlan {
  bool isPresent = false, isValid = true; ///< invalid if the attribute has another form
  StringRef tile;
  int64_t parts = 1, partSteps = 0; ///< `partSteps` is 0 if all parts are equal

  explicit AskedPlan(func::FuncOp kernel) {
    Attribute attribute = kernel ? kernel->getAttr(gemmTileAttr) : Attribute();
    if (!attribute)
      return;
    isPresent = true;
    static const llvm::Regex form("^((wg)?[0-9]+x[0-9]+(c[0-9]+)?)(/([0-9]+)([+]([0-9]+))?)?$");
    SmallVector<StringRef> found;
    auto text = dyn_cast<StringAttr>(attribute);
    isValid = text && form.match(text.getValue(), &found) &&
              (found[5].empty() || !found[5].getAsInteger(10, parts)) &&
              (found[7].empty() || !found[7].getAsInteger(10, partSteps));
    if (isValid)
      tile = found[1];
  }
};
} // namespace

/// Returns the text by which the attribute `fsdp.gemm_tile` selects a tile.
static std::string nameOf(const GpuConfig &config) {
  return (config.warpgroups ? "wg" : "") + std::to_string(config.blockRows) + "x" +
         std::to_string(config.blockCols) +
         (config.cluster > 1 ? "c" + std::to_string(config.cluster) : "");
}

/// Calls `visit` for each division of k into equal parts.
static void forEachEqualDivision(GpuPlan &plan, const AskedPlan &asked,
                                 function_ref<void()> visit) {
  for (int64_t splits : splitCounts) {
    if ((asked.isPresent ? splits != asked.parts
                         : splits > 1 && plan.kBlocks < splits * minSplitBlocks) ||
        // The kernel with wgmma requires that all parts of k have the same size.
        (plan.config.warpgroups && plan.kBlocks % splits))
      continue;
    plan.splits = splits;
    visit();
  }
}

/// Divides k into `parts` parts of `partSteps` tiles of k, and the remaining tiles of k among the
/// blocks that remain. Returns false if no tile of k or no block remains.
static bool divideUnevenly(GpuPlan &plan, int64_t parts, int64_t partSteps) {
  int64_t tiles = plan.resultTiles(), slots = plan.multiprocessors / plan.config.cluster;
  PartOrder order{tiles, plan.kBlocks, parts, partSteps};
  order.helpers = std::min(slots - order.owners(), tiles * order.tail());
  if (parts < 1 || partSteps < 1 || order.tail() < 1 || order.helpers < 1)
    return false;
  plan.uneven = order;
  plan.splits = order.mostParts();
  return true;
}

/// Calls `visit` for each division of k into unequal parts. Helpers have more parts, and thus more
/// epilogues, than other blocks. If an epilogue takes as long as e steps, the times with epilogues
/// are about equal for partSteps = tiles · (kBlocks + e) / slots. The best division may have a few
/// steps more, because all helpers then have fewer parts.
static void forEachUnevenDivision(const Problem &problem, GpuPlan &plan, const AskedPlan &asked,
                                  function_ref<void()> visit) {
  if (!plan.config.warpgroups)
    return;
  auto tryDivision = [&](int64_t parts, int64_t partSteps) {
    if (divideUnevenly(plan, parts, partSteps))
      visit();
    plan.uneven.reset();
  };
  if (asked.isPresent)
    return tryDivision(asked.parts, asked.partSteps);
  int64_t tiles = plan.resultTiles(), slots = plan.multiprocessors / plan.config.cluster;
  if (tiles >= slots)
    return;
  plan.splits = 2; // parts of k are stored by another epilogue than results
  double steps = static_cast<double>(tiles) *
                 (static_cast<double>(plan.kBlocks) + epilogueSteps(problem, plan)) /
                 static_cast<double>(slots);
  auto first = std::max(static_cast<int64_t>(steps), minSplitBlocks);
  for (int64_t partSteps = first; partSteps <= first + moreSteps; ++partSteps)
    tryDivision(slots / tiles, partSteps);
}

/// Returns true if the kernel needs no sum of a factor, or if the plan's kernel computes this sum:
/// tiles have the layout and the 16-bit elements that FactorSums.cpp reads, and there are no
/// batches.
static bool sumsFactors(const GpuPlan &plan) {
  return !plan.sums || (plan.config.warpgroups && !plan.element.isF32() && !plan.summed()->alongK &&
                        plan.outerCount == 1);
}

/// Calls `visit` for each tile of `table` that fits.
static void forEachTile(const Problem &problem, const GpuTarget &target, GpuPlan &plan,
                        ArrayRef<GpuConfig> table, const AskedPlan &asked,
                        function_ref<void()> visit) {
  for (const GpuConfig &config : table) {
    if (asked.isPresent && asked.tile != nameOf(config))
      continue;
    plan.splits = 1;
    setConfig(problem, plan, config);
    if (fits(plan, target) && sumsFactors(plan) &&
        (!config.warpgroups || makeTensorMaps(problem, plan)))
      visit();
  }
}

static bool chooseConfig(const Problem &problem, func::FuncOp kernel, const GpuTarget &target,
                         GpuPlan &plan) {
  AskedPlan asked(kernel);
  ArrayRef table = plan.isSplit()         ? ArrayRef(table32)
                   : plan.element.isF32() ? ArrayRef(tableTF32)
                                          : ArrayRef(table16);
  std::optional<GpuPlan> best;
  std::pair<double, double> least;
  auto keepBest = [&](std::pair<double, double> cost) {
    if (best && cost >= least)
      return;
    best = plan;
    least = cost;
  };
  if (!asked.partSteps)
    forEachTile(problem, target, plan, table, asked, [&] {
      forEachEqualDivision(plan, asked, [&] { keepBest({estimateCycles(plan, target), 0}); });
    });
  if (best)
    least = estimateClocks(problem, *best);
  forEachTile(problem, target, plan, groupTiles(plan), asked, [&] {
    auto visit = [&] { keepBest(estimateClocks(problem, plan)); };
    if (!asked.partSteps)
      forEachEqualDivision(plan, asked, visit);
    if (!asked.isPresent || asked.partSteps)
      forEachUnevenDivision(problem, plan, asked, visit);
  });
  if (best)
    plan = *best;
  return best.has_value();
}

/// Returns how many contiguous elements of a row a thread computes. These elements are 16 bytes of
/// the narrowest result, or fewer so that they do not cross a border of the innermost digit.
static int64_t chooseStoreCols(const Problem &problem, const GpuPlan &plan) {
  int64_t cols = 1;
  for (const StoreStep &store : problem.stores)
    cols =
        std::max(cols, std::min<int64_t>(8, chunkBytes / bytesOf(store.dest.access.elementType)));
  while (problem.digits[plan.rhs.digits.back()].size % cols)
    cols /= 2;
  return cols;
}

FailureOr<GpuPlan> gemm::makeGpuPlan(Problem &problem, func::FuncOp kernel, const GpuTarget &target,
                                     std::string &reason) {
  FailureOr<Type> element = chooseElement(problem, reason);
  if (failed(element))
    return failure();
  orient(problem);
  GpuPlan plan;
  plan.chip = target.chip;
  plan.element = *element;
  plan.f32Products = target.f32Products;
  plan.multiprocessors = target.multiprocessors;
  plan.lhs.digits = problem.digitsOf(Role::M);
  plan.rhs.digits = problem.digitsOf(Role::N);
  plan.lhs.size = product(problem, plan.lhs.digits);
  plan.rhs.size = product(problem, plan.rhs.digits);
  plan.outer = problem.digitsOf(Role::Batch);
  plan.outerCount = product(problem, plan.outer);
  plan.kOuter = problem.digitsOf(Role::K);
  plan.kInner = plan.kOuter.pop_back_val();
  plan.k = problem.digits[plan.kInner].size;
  plan.storeCols = chooseStoreCols(problem, plan);
  plan.sums = problem.factorSum.has_value();
  plan.sumsLhs = plan.sums && problem.factorSum->ofLhs;
  if (target.hasWarpgroups() && plan.element.isF32())
    (void)planPacks(problem, kernel, plan);
  if (!AskedPlan(kernel).isValid) {
    llvm::raw_string_ostream(reason)
        << "contractions whose " << gemmTileAttr
        << " is not such as \"128x64\", \"128x64/4\" or \"wg128x256c2/2+9\": found "
        << kernel->getAttr(gemmTileAttr);
    return failure();
  }
  if (!chooseConfig(problem, kernel, target, plan)) {
    reason = "contractions for which no tile size fits";
    return failure();
  }
  if (plan.sums && plan.splits > 1)
    plan.sumShares = std::min(mostSumShares, plan.otherTiles());
  if (plan.blocks() >= INT64_C(1) << 31 ||
      plan.outerCount * plan.lhs.size * plan.rhs.size / plan.storeCols >= INT64_C(1) << 31) {
    reason = "contractions with 2^31 blocks";
    return failure();
  }
  return plan;
}

std::string gemm::whyNoWarpgroups(const Problem &problem, func::FuncOp kernel, const GpuPlan &plan,
                                  const GpuTarget &target) {
  GpuPlan other = plan;
  std::string reason = planPacks(problem, kernel, other);
  if (!reason.empty())
    return reason;
  bool isPossible = false;
  forEachTile(problem, target, other, groupTiles(other), AskedPlan(func::FuncOp()),
              [&] { isPossible = true; });
  return isPossible ? "it takes fewer clocks"
                    : "no tile of wgmma fits the dimensions of its tensors";
}
