//===- GpuGemmClocks.cpp - Clocks of contractions on GPUs -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A tile takes its steps of k, each as long as the busiest unit, and the epilogue, during which
// tensor cores are idle. Tiles run in rounds of all multiprocessors, and unequal parts of k in the
// order of blocks. The epilogue of a part of k only stores sums.
//
//   wgmma       Warpgroups of 64 rows read both factors from shared memory. A cluster loads the
//               right factor once for all of its blocks. Stages hide the latency of loads.
//               Three warps on three schedulers split the right factor of f32. Loads and splits of
//               a stage take less time than the products of the other stages.
//   mma.sync    Warps read their parts of both factors with ldmatrix, 512 bytes at a time.
//   strips      Per chunk of columns two barriers, the instructions, and the latency of loads, if
//               there are any.
//   boxes       Per box of results two barriers. Loads are copied while factors are multiplied, and
//               delay a tile only if a unit is busy for longer than the tile takes otherwise. A
//               panel waits for its loads like for a barrier. Vectors hit a cache; they are loaded
//               one panel ahead, for the first panel before the main loop.
//
// Factors that exceed the L2 cache are read again for each round: tiles of a round are eight rows
// of tiles high (GpuGemmTiles.cpp).
//
// Blocks that also add a factor over k (FactorSums.cpp) read its tiles from shared memory once
// more. One of `otherTiles` tiles adds, so these plans are scheduled block by block.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Ptx/Sm90Builder.h"
#include "GpuGemmEpilogue.h"
#include "SplitFactors.h"
#include "fsdp/Analysis/Gpu/GpuClocks.h"
#include <unordered_map>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

/// Bytes of factors that stay in the L2 cache between rounds of tiles, and rows of tiles that a
/// round has.
static constexpr double cacheBytes = 32 << 20, roundRows = 8;
static constexpr double schedulers = 4, lanes = 32, matrixBytes = 512, sumBytes = 4;

static double toDouble(int64_t value) { return static_cast<double>(value); }

static double bytesOf(Type type) {
  return std::max<double>(getStorageType(type).getIntOrFloatBitWidth() / 8.0, 1);
}

/// Elements of all parts of k together, if k is split.
static double partElements(const GpuPlan &plan) {
  double parts = toDouble(plan.allParts()) / toDouble(plan.resultTiles());
  return parts * toDouble(plan.outerCount * plan.lhs.size * plan.rhs.size);
}

namespace {
/// Counts the instructions that an epilogue takes for one element of the result:
///   - Operations with equal operands count once, because LLVM removes the copies. For example,
///     several ops compute the logistic function of the same gate.
///   - A stored result of 16 bits counts as half an instruction, which converts two results.
///   - Rounding an f32 to bf16 and widening it again is one instruction. For f16 it is two.
class MapWork {
public:
  explicit MapWork(const Problem &problem) : problem(problem), loads(problem.loads.size()) {}

  OpWork count() {
    OpWork work{1, 0}; // addresses
    for (const MapStep &map : problem.maps)
      add(map, work);
    for (const StoreStep &store : problem.stores)
      if (bytesOf(store.dest.access.elementType) == 2)
        work.issue += 0.5;
    return work;
  }

private:
  void add(const MapStep &map, OpWork &work) {
    linalg::LinalgOp op = map.op;
    Block *body = op.getBlock();
    for (auto [operand, load, arg] :
         llvm::zip_equal(op->getOperands(), map.loadOf, body->getArguments())) {
      Value &same = load < 0 ? values[problem.key(operand)] : loads[load];
      if (!same)
        same = arg;
      firstOf[arg] = same;
    }
    for (Operation &inner : body->without_terminator())
      if (!findSame(inner))
        work += workOfNew(inner);
    for (auto [result, yielded] :
         llvm::zip_equal(op->getResults(), body->getTerminator()->getOperands()))
      values[result] = first(yielded);
  }

  /// Returns true if `op` rounds an f32 to 16 bits.
  static bool isRounding(Operation *op) {
    auto trunc = dyn_cast_or_null<arith::TruncFOp>(op);
    return trunc && trunc.getIn().getType().isF32() && bytesOf(trunc.getType()) == 2;
  }

  OpWork workOfNew(Operation &op) {
    if (isRounding(&op))
      return {}; // counted by count() if it is stored, and as a part of an extension
    OpWork work = workOf(op);
    auto extension = dyn_cast<arith::ExtFOp>(op);
    if (extension && extension.getIn().getType().isF16() &&
        isRounding(first(extension.getIn()).getDefiningOp()))
      work.issue += 1;
    return work;
  }

  /// Returns the first of all values that are equal to `value`.
  Value first(Value value) {
    Value same = firstOf.lookup(value);
    return same ? same : value;
  }

  /// Returns true if an earlier operation has the results of `op`, and remembers these results.
  bool findSame(Operation &op) {
    auto hash = OperationEquivalence::computeHash(
        &op, [&](Value operand) { return hash_value(first(operand)); },
        OperationEquivalence::ignoreHashValue, OperationEquivalence::IgnoreLocations);
    SmallVector<Operation *> &others = operations[hash];
    auto isEqual = [&](Value lhs, Value rhs) { return success(first(lhs) == first(rhs)); };
    for (Operation *other : others)
      if (OperationEquivalence::isEquivalentTo(&op, other, isEqual, nullptr,
                                               OperationEquivalence::IgnoreLocations)) {
        for (auto [own, earlier] : llvm::zip_equal(op.getResults(), other->getResults()))
          firstOf[own] = earlier;
        return true;
      }
    others.push_back(&op);
    return false;
  }

  const Problem &problem;
  SmallVector<Value> loads;       ///< the first argument that is a load
  DenseMap<Value, Value> values;  ///< the value of an element of a tensor
  DenseMap<Value, Value> firstOf; ///< the first of equal values
  std::unordered_map<size_t, SmallVector<Operation *>> operations; ///< by their hash
};
} // namespace

OpWork gemm::workOfMaps(const Problem &problem) { return MapWork(problem).count(); }

/// The blocks that add the tiles of k of the summed factor. The plan's own number of shares is set
/// when the plan has been chosen.
struct Adders {
  int64_t shares, tiles; ///< a part of k has `shares` adders among `tiles` tiles of the result
  bool both;             ///< true if all blocks of a cluster add

  explicit Adders(const GpuPlan &plan)
      : shares(plan.splits > 1 ? std::min(mostSumShares, plan.otherTiles()) : 1),
        tiles(plan.sumsLhs ? plan.colTiles() : plan.rowTiles()), both(plan.sumsLhs) {}
  /// Returns true if the cluster, or a block of it, with tile `number` of the result adds.
  bool adds(const GpuPlan &plan, int64_t number) const {
    int64_t adders = both ? shares : llvm::divideCeil(shares, plan.config.cluster);
    return number % tiles < adders;
  }
};

/// Bytes of the sums of a factor in f32: results and their initial values, or shares of parts.
static double countSumBytes(const Problem &problem, const GpuPlan &plan) {
  if (!plan.sums)
    return 0;
  double size = toDouble(plan.summed()->size) * sumBytes;
  if (plan.splits > 1)
    return size * toDouble(plan.splits * Adders(plan).shares);
  return size * (problem.factorSum->init.access.binding < 0 ? 1 : 2);
}

/// Bytes of memory: factors, operands of the epilogue and results, or sums of parts.
static double countBytes(const Problem &problem, const GpuPlan &plan) {
  double lhs = toDouble(plan.outerCount * plan.lhs.size * plan.k) * bytesOf(plan.element),
         rhs = toDouble(plan.outerCount * plan.rhs.size * plan.k) * bytesOf(plan.element);
  for (int digit : plan.kOuter) {
    lhs *= toDouble(problem.digits[digit].size);
    rhs *= toDouble(problem.digits[digit].size);
  }
  double rows = toDouble(plan.rowTiles()), cols = toDouble(plan.colTiles()),
         height = std::min(rows, roundRows),
         width = std::min(toDouble(plan.multiprocessors / plan.config.cluster) / height, cols);
  if ((lhs + rhs) / toDouble(plan.outerCount) > cacheBytes) {
    lhs *= std::max(cols / width, 1.0);
    rhs *= rows / height;
  }
  if (plan.splits > 1)
    return lhs + rhs + partElements(plan) * sumBytes + countSumBytes(problem, plan);
  double results = toDouble(plan.outerCount * plan.lhs.size * plan.rhs.size),
         bytes = lhs + rhs + countSumBytes(problem, plan);
  auto moved = [&](const Operand &operand) {
    double size = 1;
    for (auto [digit, stride] : llvm::enumerate(operand.strides))
      size *= stride == 0 ? 1 : toDouble(problem.digits[digit].size);
    return operand.access.binding < 0 ? 0 : size * bytesOf(operand.access.elementType);
  };
  if (!startsFromZero(problem))
    bytes += moved(problem.init);
  for (const Operand &load : problem.loads)
    bytes += moved(load);
  for (const StoreStep &store : problem.stores)
    bytes += results * bytesOf(store.dest.access.elementType);
  return bytes;
}

/// Clocks of a step of blockK values of k.
static GpuClocks stepOfGroups(const GpuPlan &plan, const GpuRates &rates) {
  constexpr double perGroup = 45; // instructions of a warp
  const GpuConfig &c = plan.config;
  double rows = toDouble(c.blockRows), cols = toDouble(c.blockCols), k = toDouble(c.blockK),
         groups = rows / Sm90Builder::groupRows, bytes = bytesOf(plan.element);
  double read = (rows + groups * cols) * k * bytes, stage = toDouble(plan.copiedBytes()),
         copied = toDouble(plan.lhs.bytes) + toDouble(plan.rhs.bytes) / toDouble(c.cluster);
  double macs = rates.warpgroupMacs / (plan.element.isF32() ? 2 : 1);
  GpuClocks step{rows * cols * k / macs, groups * perGroup, 0, (read + stage) / rates.shared,
                 copied / rates.cache};
  if (!plan.splitsTiles())
    return step;
  // Three products read rhs, and lhs is read once. Splitting reads a part of rhs and writes two.
  constexpr double products = 3, perSplit = 6;
  step.tensor *= products;
  step.shared = ((rows + products * groups * cols) * k * bytes + stage +
                 products * toDouble(plan.rhs.bytes)) /
                rates.shared;
  step.issue += groups * perGroup + rows * k / rates.lanes * perSplit +
                cols * k * (perSplit + 1) / lanes / toDouble(splittingWarps);
  return step;
}

/// Work of the epilogue of a tile, and its clocks. `latency` is that of loads.
static std::pair<GpuClocks, double> epilogueOf(const Problem &problem, const GpuPlan &plan,
                                               double columns, double barriers, double warps,
                                               double latency, const GpuRates &rates) {
  bool isPart = plan.splits > 1;
  OpWork element = isPart ? OpWork{1, 0} : workOfMaps(problem);
  double elements = toDouble(plan.config.blockRows * plan.config.blockCols),
         chunks = toDouble(plan.config.blockCols) / columns, perChunk = 40, stored = 0;
  for (const StoreStep &store : problem.stores)
    stored += bytesOf(store.dest.access.elementType);
  if (isPart)
    stored = sumBytes;
  bool loads = !isPart && (!problem.loads.empty() || !startsFromZero(problem));
  GpuClocks units{0,
                  elements * element.issue / rates.lanes + chunks * perChunk * warps / schedulers,
                  elements * element.special / rates.special, 2 * elements * stored / rates.shared,
                  elements * stored / rates.cache};
  return {units,
          units.longest() + chunks * (barriers * GpuLatencies::barrier + (loads ? latency : 0))};
}

/// Work of an epilogue with boxes, and its clocks after the last product.
static std::pair<GpuClocks, double> epilogueOfBoxes(const Problem &problem, const GpuPlan &plan,
                                                    const EpilogueBoxes &boxes, double warps,
                                                    const GpuRates &rates) {
  constexpr double perBox = 40; // instructions of a warp
  OpWork element = workOfMaps(problem);
  double elements = toDouble(plan.config.blockRows * plan.config.blockCols),
         panels = toDouble(plan.config.blockCols / Sm90Builder::panelCols),
         perPanel = toDouble(boxes.storesPerPanel()), wide = 0, shared = 0, stored = 0, loaded = 0;
  auto count = [&](ArrayRef<EpilogueBox> tensors, double &moved) {
    for (const EpilogueBox &box : tensors) {
      double bytes = bytesOf(box.operand->access.elementType);
      shared += 2 * bytes;
      wide += box.isWide ? 1.5 : 0; // accesses to pairs, exchanges
      moved += bytes;
    }
  };
  count(boxes.stores, stored);
  count(boxes.loads, loaded);
  GpuClocks units{0,
                  elements * (element.issue + wide) / rates.lanes +
                      panels * (perPanel + toDouble(boxes.loadsPerPanel())) * perBox * warps /
                          schedulers,
                  elements * element.special / rates.special, elements * shared / rates.shared,
                  elements * stored / rates.cache};
  bool loadsVectors = llvm::any_of(problem.loads, [&](const Operand &load) {
    return load.access.binding >= 0 && isVector(plan, load);
  });
  double writes = std::ceil(perPanel / toDouble(boxes.storesTogether())),
         barriers = panels * (2 * writes + (loaded > 0 ? 1 : 0)) * GpuLatencies::barrier,
         clocks = units.longest() + barriers;
  if (loadsVectors)
    clocks += (panels - 1) * std::max(GpuLatencies::cache - clocks / panels, 0.0);
  units.cache += elements * loaded / rates.cache;
  return {units, clocks};
}

static std::pair<GpuClocks, double> epilogueOfGroups(const Problem &problem, const GpuPlan &plan,
                                                     const GpuRates &rates) {
  double warps = toDouble(plan.config.blockRows / Sm90Builder::groupRows) * 4;
  if (auto boxes = makeEpilogueBoxes(problem, plan))
    return epilogueOfBoxes(problem, plan, *boxes, warps, rates);
  return epilogueOf(problem, plan, toDouble(groupCols), 2, warps, GpuLatencies::global, rates);
}

double gemm::epilogueSteps(const Problem &problem, const GpuPlan &plan) {
  const GpuRates &rates = GpuRates::get(plan.chip);
  return epilogueOfGroups(problem, plan, rates).second / stepOfGroups(plan, rates).longest();
}

/// Work of the addition of one tile of k of the summed factor.
static GpuClocks additionOf(const GpuPlan &plan, const GpuRates &rates) {
  constexpr double perRow = 5, perTile = 15; // instructions of a warp
  constexpr int64_t threads = 2 * Sm90Builder::groupThreads;
  const GpuSide &side = *plan.summed();
  double rows = toDouble(plan.config.blockK / (threads / (side.width / 2)));
  return {0, (perRow * rows + perTile) * threads / lanes / schedulers, 0,
          toDouble(side.bytes) / rates.shared, 0};
}

/// Schedules the blocks of unequal parts of k, and those of plans that add a factor. Blocks of a
/// cluster run together.
static GpuCost costOfBlocks(const Problem &problem, const GpuPlan &plan, const GpuRates &rates) {
  const int64_t cluster = plan.config.cluster;
  GpuClocks step = stepOfGroups(plan, rates), addition;
  auto [epilogue, epilogueClocks] = epilogueOfGroups(problem, plan, rates);
  double added = 0; // clocks that the additions of all tiles of k of a step take longer
  std::optional<Adders> adders;
  if (plan.sums) {
    adders.emplace(plan);
    addition = additionOf(plan, rates);
    GpuClocks both = step;
    both += addition;
    added = (both.longest() - step.longest()) / toDouble(adders->shares);
  }
  auto clocksOf = [&, atEnd = epilogueClocks](int64_t tile, int64_t steps) {
    double perStep = step.longest() + (adders && adders->adds(plan, tile) ? added : 0);
    return toDouble(steps) * perStep + atEnd;
  };
  GpuClocks whole = step * toDouble(plan.partBlocks());
  whole += epilogue;
  double tileClocks = whole.longest(); // of equal parts
  BlockScheduler schedule(plan.multiprocessors / cluster);
  Integers m;
  int64_t tiles = plan.resultTiles(), blocks = plan.uneven ? plan.uneven->blocks() : plan.tiles();
  for (int64_t block = 0; block < blocks; ++block) {
    if (!plan.uneven) {
      schedule.add(std::max(clocksOf(block % tiles, plan.partBlocks()), tileClocks));
      continue;
    }
    double clocks = 0;
    for (int64_t tile = plan.uneven->firstTile(m, block); tile < plan.uneven->endTile(m, block);
         ++tile)
      clocks += clocksOf(tile, plan.uneven->turnAt(m, block, tile).steps);
    schedule.add(clocks);
  }
  GpuClocks all = step * toDouble(tiles * plan.kBlocks * cluster);
  all += epilogue * toDouble(plan.allParts() * cluster);
  if (adders)
    all += addition * toDouble(tiles / adders->tiles * plan.kBlocks * (adders->both ? cluster : 1));
  return getLaunchCost(schedule, all, plan.multiprocessors, countBytes(problem, plan));
}

static GpuCost costOfGroups(const Problem &problem, const GpuPlan &plan, const GpuRates &rates) {
  if (plan.uneven || plan.sums)
    return costOfBlocks(problem, plan, rates);
  const GpuConfig &c = plan.config;
  GpuClocks step = stepOfGroups(plan, rates);
  auto [epilogue, epilogueClocks] = epilogueOfGroups(problem, plan, rates);
  double steps = toDouble(plan.partBlocks());
  GpuClocks tile = step * steps;
  tile += epilogue;
  return getUniformCost(plan.blocks(), 1, tile,
                        std::max(steps * step.longest() + epilogueClocks, tile.longest()),
                        plan.multiprocessors / c.cluster * c.cluster, countBytes(problem, plan));
}

static GpuCost costOfWarps(const Problem &problem, const GpuPlan &plan, const GpuRates &rates) {
  constexpr double mmaMacs = 16 * 8 * 16, perStep = 20, perSplit = 6, perRounding = 1,
                   copyBytes = 16;
  const GpuConfig &c = plan.config;
  bool isWide = plan.element.isF32();
  double warps = toDouble(c.warps()), resident = toDouble(c.blocksPerSm), k = toDouble(c.blockK),
         stage = toDouble(plan.stageBytes()),
         macs = toDouble(c.blockRows * c.blockCols) * k * (plan.isSplit() ? 3 : 1),
         loaded = toDouble(c.warpRows + c.warpCols) * k * bytesOf(plan.element);
  // In f32, products of half as many values of k: three of them, of factors that are split into two
  // parts, or one of factors that are rounded.
  double issue =
      macs / warps / mmaMacs * (isWide ? 2 : 1) + loaded / matrixBytes +
      (isWide ? loaded / sumBytes / lanes * (plan.isSplit() ? perSplit : perRounding) : 0) +
      stage / warps / lanes / copyBytes * 2 + perStep;
  GpuClocks step{macs / (isWide ? rates.tf32Macs : rates.macs), issue * warps / schedulers, 0,
                 (loaded * warps + stage) / rates.shared, stage / rates.cache};
  double stepClocks =
      std::max(resident * step.longest(),
               step.tensor / std::max(warps / schedulers, 1.0) + issue + GpuLatencies::barrier);
  auto [epilogue, epilogueClocks] =
      epilogueOf(problem, plan, toDouble(c.blockCols), 3, warps, GpuLatencies::global, rates);
  double steps = toDouble(llvm::divideCeil(plan.kBlocks, plan.splits));
  GpuClocks block = step * steps;
  block += epilogue;
  return getUniformCost(plan.blocks(), c.blocksPerSm, block,
                        steps * stepClocks + epilogueClocks + GpuLatencies::global,
                        plan.multiprocessors, countBytes(problem, plan));
}

GpuCost gemm::costOf(const Problem &problem, const GpuPlan &plan) {
  const GpuRates &rates = GpuRates::get(plan.chip);
  if (!plan.config.warpgroups)
    return costOfWarps(problem, plan, rates);
  GpuCost cost = costOfGroups(problem, plan, rates);
  cost.clocks += GpuLatencies::global; // the first stage
  return cost;
}

GpuCost gemm::costOfPartSums(const Problem &problem, const GpuPlan &plan) {
  int64_t blocks = sumBlocks(plan), threads = sumThreads;
  double strip = toDouble(plan.storeCols), stored = 0,
         parts = toDouble(plan.allParts()) / toDouble(plan.resultTiles());
  for (const StoreStep &store : problem.stores)
    stored += bytesOf(store.dest.access.elementType);
  OpWork element = workOfMaps(problem);
  GpuClocks thread;
  thread.issue = strip * (parts + element.issue) + 30;
  thread.special = strip * element.special;
  thread.cache = strip * (parts * sumBytes + stored);
  double bytes = thread.cache * toDouble(blocks * threads);
  if (plan.sums) // shares are read, results are written
    bytes += countSumBytes(problem, plan) + toDouble(plan.summed()->size) * sumBytes;
  return getStreamCost(blocks, threads, thread, GpuRates::get(plan.chip), plan.multiprocessors,
                       bytes);
}

GpuCost gemm::costOfPack(const GpuPlan &plan, const PackedFactor &packed) {
  constexpr int64_t perThread = 4; // elements
  constexpr double instructions = 90;
  GpuClocks thread;
  thread.issue = instructions;
  thread.cache = 2 * perThread * sumBytes;
  int64_t threads = packed.bytes / 4 / perThread;
  return getStreamCost(llvm::divideCeil(threads, packThreads), packThreads, thread,
                       GpuRates::get(plan.chip), plan.multiprocessors, 2 * toDouble(packed.bytes));
}
