//===- GemmPlan.cpp - Blocking of a contraction -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//            n: panels of nr                  for each panel of columns
//          +----+----+----+                     pack kc × nr of rhs     (L2)
//       k  |rhs |    |    |                     for each panel of rows
//          +----+----+----+                       mr × nr tile in registers
//   +---+  +----+----+----+
//   |lhs|  |tile|    |    | m: panels of mr   lhs is packed once per mc × kc (L3)
//   +---+  +----+----+----+
//
// A model chooses the size of the register tile: the size with the lowest cost. The cost of a tile
// size is the time of the steps of all tiles, including padding. The time of a step is the time of
// its multiply-adds or of its loads, whichever is longer, plus a small term for reads from the
// caches.
//
//===----------------------------------------------------------------------===//

#include "GemmPlan.h"
#include "Codegen/Kernel/Gemm/GemmShared.h"
#include "fsdp/IR/Kernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

/// Sizes in bytes that decide how much of lhs is packed at a time. An lhs of up to lhsWholeBytes is
/// packed as a whole, so that rhs is packed only once. A larger lhs is packed in blocks of
/// lhsBlockBytes. The blocks of all workers together fit the last-level cache.
static constexpr int64_t lhsWholeBytes = 6 << 20, lhsBlockBytes = 3 << 20;
/// Size in bytes of a block of lhs if the shared cache is distant and the rows are divided among
/// workers. The blocks are larger because packing rhs again takes longer.
static constexpr int64_t lhsDividedBytes = 12 << 20;
/// Size of one panel of rhs, in bytes.
static constexpr int64_t rhsPanelBytes = 256 << 10;
/// Sizes in bytes of a block of lhs and of a panel of rhs, if tile registers are used. Both are
/// smaller than the sizes above, because products with tile registers read more bytes per cycle.
/// The block takes half of an L2 cache of 2 MiB. If all values of k do not fit into one panel, and
/// partial sums are kept anyway, panels have rhsTilePartBytes. Shorter panels are packed in larger
/// numbers, so that packing reads longer rows of rhs at a time. The sizes of panels are those of
/// one slice.
static constexpr int64_t lhsTileBlockBytes = 1 << 20, rhsTilePanelBytes = 64 << 10,
                         rhsTilePartBytes = 32 << 10;
/// Size in bytes of the panels of rhs that are packed together for tile registers.
static constexpr int64_t rhsTileGroupBytes = 256 << 10;
/// Sizes in bytes of a block of lhs and of a group of panels of rhs, if the operands have several
/// slices. Products then read fewer bytes per cycle, so that lhs may be in the shared cache.
/// Packing takes longer, so that rhs should be packed only once.
static constexpr int64_t lhsSlicedBytes = 6 << 20, rhsSlicedGroupBytes = 1 << 20;
/// If tile registers are used, a slab has `tileSlab` values of k, and a strip has `tileStrip`
/// panels, or `directStrip` panels if the sums are kept in the result's buffer. For tiles of 32 x
/// 32 sums, the slab of a panel of lhs has 32 KiB. It stays in the L1 cache, because the slabs of
/// rhs are streamed (Product::streamsRight). After each slab, the sums are stored and loaded again.
/// This takes as long as the products of 32 to 64 values of k, so longer slabs are faster.
static constexpr int64_t tileSlab = 512, tileStrip = 2, directStrip = 4;
/// Minimum size in bytes of a result that is written with streaming stores.
static constexpr int64_t streamedBytes = 2 << 20;
/// Minimum number of units to distribute among workers.
static constexpr int64_t minUnits = 16;
/// If `minTilesBeside` to `maxTilesBeside` micro-kernels use a panel of rhs, each of them
/// prefetches a part of the next panel. Fewer micro-kernels have no time for this. With more,
/// reading rhs takes little time, unless the shared cache is distant. An rhs of less than
/// rhsInMemoryBytes is in a cache anyway, and less than rhsInDistantBytes is in the L2 cache.
static constexpr int64_t minTilesBeside = 4, rhsInMemoryBytes = 4 << 20,
                         rhsInDistantBytes = 1 << 20;
/// Number of parts of a micro-kernel if the shared cache is distant.
static constexpr int64_t partsIfDistant = 8;
/// Maximum size of the partial sums kept in scratch, in bytes.
static constexpr int64_t sumsBytes = 2 << 20;

int64_t Plan::kSteps(int64_t k) const {
  switch (arithmetic) {
  case Arithmetic::Fma:
    return k;
  case Arithmetic::Bf16Dot:
    return llvm::divideCeil(k, 2);
  case Arithmetic::Bf16Pairs:
    return llvm::alignTo(k, 2);
  case Arithmetic::Tiles:
    return llvm::alignTo(llvm::divideCeil(k, 2), tileSize);
  }
  llvm_unreachable("unknown arithmetic");
}

int64_t Plan::stepBytes() const { return packType.getIntOrFloatBitWidth() / 8 * kPerStep(); }

static LogicalResult chooseTypes(const Problem &problem, Plan &plan, const CpuTarget &target) {
  auto isSupported = [](Type type) {
    return type.isF32() || type.isF64() || type.isBF16() || type.isF16();
  };
  Type lhs = getValueType(problem.lhs.access), rhs = getValueType(problem.rhs.access);
  Type result = getElementTypeOrSelf(problem.root().getType());
  if (!isSupported(lhs) || !isSupported(rhs) || !isSupported(result) ||
      !isSupported(getValueType(problem.init.access)))
    return failure();
  MLIRContext *context = result.getContext();
  plan.accType = result.isF64() ? Type(Float64Type::get(context)) : Type(Float32Type::get(context));
  plan.packType = plan.accType;
  plan.lanes = target.vectorBits / plan.accType.getIntOrFloatBitWidth();
  bool isBf16 = lhs.isBF16() && rhs.isBF16();
  if (plan.accType.isF32() && target.usesTiles()) {
    plan.arithmetic = Arithmetic::Tiles;
    plan.emulatesTiles = target.bf16 == Bf16Products::TileLoops;
    plan.slices = isBf16 ? 1 : amx::f32Slices;
  } else if (plan.accType.isF32() && isBf16) {
    plan.arithmetic =
        target.bf16 == Bf16Products::Dot ? Arithmetic::Bf16Dot : Arithmetic::Bf16Pairs;
  }
  if (plan.packsPairs())
    plan.packType = BFloat16Type::get(context);
  return success();
}

/// Returns true if the indices over `digits` can be divided into tiles of `tile` consecutive
/// indices such that no tile crosses a border of the innermost digit.
static bool isFlat(const Problem &problem, ArrayRef<int> digits, int64_t tile) {
  return digits.size() == 1 || problem.digits[digits.back()].size % tile == 0;
}

/// Returns the number of rows (or columns) of all `digits`, including padding to whole tiles.
static int64_t padded(const Problem &problem, ArrayRef<int> digits, int64_t tile) {
  int64_t all = product(problem, digits), inner = problem.digits[digits.back()].size;
  return isFlat(problem, digits, tile) ? llvm::alignTo(all, tile)
                                       : all / inner * llvm::alignTo(inner, tile);
}

/// Chooses the register tile if tile registers are used. The sums are kept in a rectangle of the
/// eight tile registers, and this function chooses how many rows and columns the rectangle has. In
/// the model, for 32 values of k, a product takes 16 cycles and a load of a tile takes 8 cycles.
static void chooseTileRegisters(const Problem &problem, Plan &plan) {
  SmallVector<int> rows = problem.digitsOf(Role::M), cols = problem.digitsOf(Role::N);
  double best = 0;
  for (auto [r, c] : {std::pair(2, 2), std::pair(1, 4), std::pair(4, 1), std::pair(1, 2),
                      std::pair(2, 1), std::pair(1, 1)}) {
    int64_t mr = r * tileSize, nr = c * tileSize;
    double tiles = double(padded(problem, rows, mr) / mr) * double(padded(problem, cols, nr) / nr);
    double cost = tiles * (std::max(16.0 * r * c, 8.0 * (r + c)) + 2.0 * (r + c));
    for (const auto &[digits, tile] : {std::pair(rows, mr), std::pair(cols, nr)})
      cost *= isFlat(problem, digits, tile) ? 1.0 : 1.05;
    if (best != 0 && cost >= best)
      continue;
    best = cost;
    plan.mr = mr;
    plan.nv = c;
    plan.nr = nr;
  }
}

static void chooseTile(const Problem &problem, Plan &plan, const CpuTarget &target) {
  if (plan.arithmetic == Arithmetic::Tiles)
    return chooseTileRegisters(problem, plan);
  SmallVector<int> rows = problem.digitsOf(Role::M), cols = problem.digitsOf(Role::N);
  // Registers hold the sums, a row of rhs and a value of lhs. One or two registers stay free.
  int64_t registers = target.hasAvx512() ? 30 : 15;
  double best = 0;
  for (int64_t nv = 1; nv <= 4; ++nv)
    for (int64_t mr = 1; mr * nv + nv + 1 <= registers && mr <= 16; ++mr) {
      int64_t nr = nv * plan.lanes;
      double tiles =
          double(padded(problem, rows, mr) / mr) * double(padded(problem, cols, nr) / nr);
      // In the model, a core does two multiply-adds and two loads per cycle, and the result of a
      // multiply-add is available after four cycles.
      double step =
          double(std::max({mr * nv, mr + nv, int64_t(8)})) + 0.1 * double(mr) + 0.25 * double(nv);
      double cost = tiles * step;
      for (const auto &[digits, tile] : {std::pair(rows, mr), std::pair(cols, nr)})
        cost *= isFlat(problem, digits, tile) ? 1.0 : 1.05;
      if (best != 0 && cost >= best)
        continue;
      best = cost;
      plan.mr = mr;
      plan.nv = nv;
      plan.nr = nr;
    }
}

/// Assigns digits to rows, columns, outer loops and k.
static void assignDigits(const Problem &problem, Plan &plan) {
  plan.outer = problem.digitsOf(Role::Batch);
  for (auto [role, tile, flat, size] : {std::tuple(Role::M, plan.mr, &plan.rows, &plan.m),
                                        std::tuple(Role::N, plan.nr, &plan.cols, &plan.n)}) {
    *flat = problem.digitsOf(role);
    if (!isFlat(problem, *flat, tile)) {
      plan.outer.append(flat->begin(), std::prev(flat->end()));
      *flat = {flat->back()};
    }
    *size = product(problem, *flat);
  }
  plan.kOuter = problem.digitsOf(Role::K);
  plan.kInner = plan.kOuter.pop_back_val();
  plan.k = problem.digits[plan.kInner].size;
  plan.kOuterCount = product(problem, plan.kOuter);
  plan.outerCount = product(problem, plan.outer);
}

static bool isDirect(const Problem &problem, const Plan &plan) {
  if (!problem.maps.empty() || problem.stores.size() != 1)
    return false;
  const Operand &dest = problem.stores.front().dest;
  return problem.stores.front().value == problem.root() &&
         dest.access.elementType == plan.accType && dest.strides[plan.cols.back()] == 1 &&
         (problem.init.access.binding < 0 || problem.init.sameAs(dest));
}

/// Returns the size of a block if `size` is divided into equal blocks of at most `limit`. The
/// result is a multiple of `unit`.
static int64_t evenBlock(int64_t size, int64_t limit, int64_t unit) {
  int64_t blocks = llvm::divideCeil(size, std::max(limit, unit));
  return llvm::alignTo(llvm::divideCeil(size, std::max<int64_t>(blocks, 1)), unit);
}

static void chooseBlocks(const Problem &problem, Plan &plan, const CpuTarget &target) {
  int64_t kUnit = plan.lanes * plan.kPerStep();
  bool tiles = plan.arithmetic == Arithmetic::Tiles;
  bool isOnePanel = plan.kSteps(plan.k) * plan.nr * plan.stepBytes() <= rhsTilePanelBytes;
  int64_t panelLimit = !tiles ? rhsPanelBytes : isOnePanel ? rhsTilePanelBytes : rhsTilePartBytes;
  plan.kc = evenBlock(plan.k, panelLimit / (plan.nr * plan.stepBytes()) * plan.kPerStep(), kUnit);
  plan.kBlocks = llvm::divideCeil(plan.k, plan.kc) * plan.kOuterCount;
  int64_t lhsBytes = llvm::divideCeil(plan.m, plan.mr) * plan.panelBytes(plan.mr);
  bool isDivided = target.hasDistantCache && plan.m > plan.n;
  int64_t wholeLimit = plan.slices > 1 ? lhsSlicedBytes
                       : tiles         ? lhsTileBlockBytes
                       : isDivided     ? lhsDividedBytes
                                       : lhsWholeBytes;
  int64_t blockLimit = isDivided ? wholeLimit : std::min(wholeLimit, lhsBlockBytes);
  int64_t lhsLimit = lhsBytes <= wholeLimit ? lhsBytes : blockLimit;
  plan.mc = evenBlock(plan.m, lhsLimit / plan.panelBytes(plan.mr) * plan.mr, plan.mr);
  plan.kSlab = tiles ? evenBlock(plan.kc, tileSlab, kUnit) : plan.kc;
  // If a block of k has several slabs, sums are loaded and stored several times. The loads and
  // stores are faster if the sums are in scratch instead of the result's buffer.
  plan.direct = isDirect(problem, plan) && (plan.kSlab == plan.kc || plan.kBlocks > 1);
  if (tiles) {
    int64_t panels = llvm::divideCeil(plan.n, plan.nr);
    // A strip does not cross a border of the innermost digit.
    int64_t strip = plan.direct ? directStrip : tileStrip;
    plan.strip = plan.cols.size() == 1 ? std::min(strip, panels) : 1;
    int64_t groupBytes = plan.slices > 1 ? rhsSlicedGroupBytes : rhsTileGroupBytes;
    int64_t group = std::clamp<int64_t>(groupBytes / plan.panelBytes(plan.nr), 1, panels);
    plan.colGroup = llvm::alignTo(group, plan.strip);
  }
  plan.nc = llvm::alignTo(plan.n, plan.nr);
  int64_t accBytes = plan.accType.getIntOrFloatBitWidth() / 8;
  int64_t kept = plan.finishesBeside() ? 2 : 1;
  if (!plan.direct && plan.kBlocks > 1) {
    plan.nc = evenBlock(plan.n, sumsBytes / (plan.mc * accBytes), plan.stripCols());
    kept = plan.mc / plan.mr * (plan.nc / plan.stripCols());
  }
  // The larger operand is divided among workers, unless this operand has too few units. A worker
  // packs all of the other operand, or the blocks of rows that its units belong to.
  int64_t rowUnits = llvm::divideCeil(plan.m, plan.mr),
          colUnits = llvm::divideCeil(plan.n, plan.nr);
  plan.splitRows = plan.m > plan.n;
  if (plan.outerCount * (plan.splitRows ? rowUnits : colUnits) < minUnits)
    plan.splitRows = rowUnits > colUnits;
  plan.unitsPerBlock = plan.splitRows ? rowUnits : colUnits;
  plan.rowBlocks = plan.splitRows ? 1 : llvm::divideCeil(plan.m, plan.mc);
  plan.lhsOffset = 0;
  int64_t lhsPanels = plan.mc / plan.mr + plan.panelsPerVector(plan.mr) - 1;
  plan.rhsOffset = llvm::alignTo(lhsPanels * plan.panelBytes(plan.mr), 64);
  plan.tileOffset = llvm::alignTo(plan.rhsOffset + plan.colGroup * plan.panelBytes(plan.nr), 64);
  plan.configOffset =
      llvm::alignTo(plan.tileOffset + kept * plan.mr * plan.stripCols() * accBytes, 64);
  plan.workerBytes = plan.configOffset + (tiles ? amx::configBytes : 0);
}

bool gemm::isStreamed(const Problem &problem, const Plan &plan, const StoreStep &store) {
  const Operand &dest = store.dest;
  int64_t bytes = getStorageType(dest.access.elementType).getIntOrFloatBitWidth() / 8;
  auto readsDest = [&](const Operand &operand) {
    return operand.access.binding == dest.access.binding;
  };
  return plan.finishesBeside() && !llvm::any_of(problem.loads, readsDest) &&
         !readsDest(problem.init) && dest.strides[plan.cols.back()] == 1 &&
         plan.chunkCols() * bytes % lineBytes == 0 &&
         dest.strides[plan.rows.back()] * bytes % lineBytes == 0 &&
         plan.m * plan.n * plan.outerCount * bytes >= streamedBytes;
}

/// Returns true if micro-kernels can prefetch the panels of an operand. The last digit of `digits`
/// is the operand's row or column.
static bool hasLines(const Plan &plan, const Operand &operand, ArrayRef<int> digits) {
  return operand.access.binding >= 0 &&
         (operand.strides[digits.back()] == 1 || operand.strides[plan.kInner] == 1);
}

static void choosePrefetches(const Problem &problem, Plan &plan, const CpuTarget &target) {
  if (plan.arithmetic == Arithmetic::Tiles)
    return;
  int64_t tiles = plan.mc / plan.mr, bytes = plan.n * plan.k * plan.stepBytes() / plan.kPerStep();
  bool pays = target.hasDistantCache ? bytes >= rhsInDistantBytes
                                     : tiles <= maxTilesBeside && bytes >= rhsInMemoryBytes;
  plan.prefetchesRhs = pays && tiles >= minTilesBeside && hasLines(plan, problem.rhs, plan.cols);
  if (!target.hasDistantCache)
    return;
  plan.parts = partsIfDistant;
  plan.prefetchesLhs = hasLines(plan, problem.lhs, plan.rows);
  // If the rows are contiguous, the lines of a panel are far apart and replace each other in the
  // caches before the panel is packed.
  plan.packsLhsOnUse = plan.prefetchesLhs && problem.lhs.strides[plan.kInner] == 1;
  if (plan.packsLhsOnUse && plan.rows.size() == 1)
    plan.lhsPanelsPerUse = plan.panelsPerVector(plan.mr);
}

FailureOr<Plan> gemm::makePlan(Problem &problem, const CpuTarget &target) {
  Plan plan;
  if (failed(chooseTypes(problem, plan, target)))
    return failure();
  orient(problem);
  chooseTile(problem, plan, target);
  assignDigits(problem, plan);
  chooseBlocks(problem, plan, target);
  plan.streams = llvm::any_of(
      problem.stores, [&](const StoreStep &store) { return isStreamed(problem, plan, store); });
  choosePrefetches(problem, plan, target);
  return plan;
}
