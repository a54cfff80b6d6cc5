//===- GpuBackward.cpp - Launches of the backward pass ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Chooses the kernel for dK and dV: the kernel with wgmma if the chip and the shapes allow it
//     (Sm90Backward.cpp), otherwise the kernel with mma (Sm80KeyGradients.cpp). For dQ, there is a
//     separate kernel with mma, unless the kernel for dK and dV also sums dQ. In f32, each kernel
//     uses wgmma where the model predicts fewer clocks (Wide/Sm90WidePlan.cpp).
//  2. Sets the offsets in the scratch and emits the launches in order. If gradients of captured
//     tensors are needed, the launches of Sm80Captures.cpp are among them.
//
//===----------------------------------------------------------------------===//

#include "GpuBackward.h"
#include "AttentionClocks.h"
#include "Sm90Backward.h"
#include "Sm90Orders.h"
#include "Wide/Sm90WideGradients.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static GpuCost streamCost(int64_t blocks, int64_t threads, double issue, double bytes,
                          const GpuTarget &target);

namespace {
/// Emits the launches of one kernel function, in the order in which they run.
class BackwardLaunches {
public:
  BackwardLaunches(const Sm80Problem &problem, const GpuTarget &target, ModuleOp entries,
                   GpuKernel &info)
      : problem(problem), target(target), plan(problem.plan), shape(problem.shape), op(problem.op),
        captures(problem.captures),
        element(cast<RankedTensorType>(op.getQ().getType()).getElementType()), entries(entries),
        info(info) {}

  /// Emits the launches that compute dQ, dK and dV.
  void gradients();
  /// Emits the launch that adds contributions to tables.
  void tables();
  /// Emits a launch of Sm80Captures that runs before or after the launches for gradients.
  void around(int64_t blocks, void (Sm80Captures::*emit)(GpuBuilder &, func::FuncOp) const) {
    launch(Sm80Captures::threads, 1, blocks, 0,
           [&](Sm80Tiles &b) { (captures.*emit)(b, problem.kernel); });
    constexpr double instructions = 20, bytes = 16; // of a thread
    if (blocks)
      info.launches.back().cost =
          streamCost(blocks, Sm80Captures::threads, instructions, bytes, target);
  }

private:
  void keys();
  void norms();
  void queries(bool tables);
  void wide(const Sm90Wide &config) {
    lowerSm90Wide(problem, config, nextSymbol(), target, entries, info);
  }
  std::string nextSymbol() const {
    return info.info.name +
           (info.launches.empty() ? "" : "_" + std::to_string(info.launches.size()));
  }
  void launch(int64_t threads, int64_t minBlocks, int64_t units, int64_t sharedBytes,
              function_ref<void(Sm80Tiles &)> emit);

  Sm80Work workOfPass(AttentionPass pass, const Sm80Config &config);

  const Sm80Problem &problem;
  const GpuTarget &target;
  const Sm80Backward &plan;
  const Shape &shape;
  AttentionGradOp op;
  const Sm80Captures &captures;
  Type element;
  ModuleOp entries;
  GpuKernel &info;
};
} // namespace

void BackwardLaunches::launch(int64_t threads, int64_t minBlocks, int64_t units,
                              int64_t sharedBytes, function_ref<void(Sm80Tiles &)> emit) {
  if (!units)
    return;
  std::string symbol = nextSymbol();
  Sm80Tiles b(op.getLoc(), op.getContext(), threads, element, target.f32Products);
  b.enter(entries, problem.kernel, symbol, minBlocks, /*scratch=*/true);
  emit(b);
  b.leave();
  info.launches.push_back({symbol, units, threads, sharedBytes, {}});
}

/// Returns the pass of the kernel `number` of those with mma.sync that own keys.
static AttentionPass passOfKeys(const Sm80Backward &plan, size_t number) {
  return plan.keys.size() == 1 ? AttentionPass::Keys
         : number == 0         ? AttentionPass::KeysOfK
                               : AttentionPass::KeysOfV;
}

/// Returns the work of a kernel with mma.sync.
Sm80Work BackwardLaunches::workOfPass(AttentionPass pass, const Sm80Config &config) {
  return workOf(pass, AttentionTiles(op), workOfFunctions(op, pass), config, shape, element,
                target);
}

/// Returns the cost of a launch whose threads move `bytes` bytes each.
static GpuCost streamCost(int64_t blocks, int64_t threads, double issue, double bytes,
                          const GpuTarget &target) {
  GpuClocks thread;
  thread.issue = issue;
  thread.cache = bytes;
  return getStreamCost(blocks, threads, thread, GpuRates::get(target.chip), target.multiprocessors,
                       bytes * static_cast<double>(blocks * threads));
}

/// Returns the cost of the launch that computes lse and δ of `queries` queries.
static GpuCost normCost(int64_t queries, const Shape &shape, Type element,
                        const GpuTarget &target) {
  // A lane reads its part of O and dO; all lanes of a query store two norms.
  constexpr int64_t lanes = 8;
  double own = static_cast<double>(shape.valueDim) / lanes,
         elementBytes = element.getIntOrFloatBitWidth() / 8.0;
  return streamCost(queries * lanes / normThreads, normThreads, 30 + 3 * own,
                    2 * own * elementBytes + 1, target);
}

void BackwardLaunches::norms() {
  launch(normThreads, 1, normBlocks(problem), 0, [&](Sm80Tiles &b) { emitNorms(b, problem); });
  info.launches.back().cost =
      normCost(shape.batch * shape.heads * plan.rowStride, shape, element, target);
}

void BackwardLaunches::queries(bool tables) {
  if (const std::optional<Sm90Wide> &config = tables ? plan.wideTables : plan.wideQueries)
    return wide(*config);
  const Sm80Config &rows = plan.queries;
  Sm80Work work = workOfPass(tables ? AttentionPass::Tables : AttentionPass::Queries, rows);
  QueryOrder order = attention::chooseQueryOrder(work);
  launch(rows.threads(), rows.blocksPerSm, order.tiles(),
         queryNeeds(rows, shape, element).sharedBytes,
         [&](Sm80Tiles &b) { emitQueryGradients(b, problem, order, tables); });
  info.launches.back().cost = costOf(work, order);
}

void BackwardLaunches::keys() {
  if (plan.keysOfGroups) {
    lowerSm90Keys(problem, *plan.keysOfGroups, nextSymbol(), entries, info);
    info.launches.back().cost = costOfKeys(op, *plan.keysOfGroups, shape, plan.order, target);
    return;
  }
  for (const Sm90Wide &config : plan.wideKeys)
    wide(config);
  for (auto [number, config] : llvm::enumerate(plan.keys)) {
    AttentionPass pass = passOfKeys(plan, number);
    if (llvm::any_of(plan.wideKeys, [&](const Sm90Wide &wide) {
          return wide.pass == pass || wide.pass == AttentionPass::Keys ||
                 pass == AttentionPass::Keys;
        }))
      continue;
    bool wantsK = pass != AttentionPass::KeysOfV, wantsV = pass != AttentionPass::KeysOfK;
    Sm80Work work = workOfPass(pass, config);
    KeyOrder order = chooseKeyOrder(work);
    launch(config.threads(), config.blocksPerSm, order.blocks(),
           keyNeeds(config, shape, element, wantsK, wantsV).sharedBytes,
           [&, &config = config](Sm80Tiles &b) {
             emitKeyGradients(b, problem, config, order, wantsK, wantsV);
           });
    info.launches.back().cost = costOf(work, order);
  }
}

void BackwardLaunches::tables() {
  const std::optional<Sm90Keys> &config = plan.tablesOfGroups;
  Sm80Backward own = plan;
  GpuCost cost;
  if (config) {
    own.keysOfGroups = config;
    own.order = chooseFastestOrder(op, *config, shape, target);
    cost = costOfKeys(op, *config, shape, own.order, target);
  }
  Sm80Work work = workOfPass(AttentionPass::Tables, plan.queries);
  if (!config || costOf(work, attention::chooseQueryOrder(work)).clocks < cost.clocks)
    return queries(/*tables=*/true);
  lowerSm90Keys({own, shape, op, problem.kernel, captures}, *config, nextSymbol(), entries, info);
  info.launches.back().cost = cost;
}

void BackwardLaunches::gradients() {
  bool addsToQ = plan.keysOfGroups && plan.keysOfGroups->addsToQ;
  if (addsToQ || plan.wideQueries || plan.wideTables || !plan.wideKeys.empty())
    norms();
  if (!addsToQ)
    queries(/*tables=*/false);
  keys();
}

static constexpr double launchClocks = 4000; // of a further launch, as in GpuGemmPlan.cpp

/// Returns the clocks of the kernel with mma.sync for a pass.
static double clocksOfMma(AttentionGradOp op, AttentionPass pass, const Sm80Backward &plan,
                          const Shape &shape, Type element, const GpuTarget &target) {
  bool ownsQueries = pass == AttentionPass::Queries || pass == AttentionPass::Tables;
  const Sm80Config &config = ownsQueries                      ? plan.queries
                             : pass == AttentionPass::KeysOfV ? plan.keys.back()
                                                              : plan.keys.front();
  Sm80Work work =
      workOf(pass, AttentionTiles(op), workOfFunctions(op, pass), config, shape, element, target);
  return ownsQueries ? costOf(work, attention::chooseQueryOrder(work)).clocks
                     : costOf(work, chooseKeyOrder(work)).clocks;
}

/// Returns true if the kernels with mma.sync take fewer clocks than the kernel with wgmma. This can
/// happen if warpgroups share keys, there are few blocks, and one head dimension is small, or if
/// dQ has a kernel of its own and the functions take more time than the products.
static bool isSlowerThanMma(AttentionGradOp op, const Sm80Backward &plan, const Shape &shape,
                            Type element, const GpuTarget &target) {
  auto of = [&](AttentionPass pass) { return clocksOfMma(op, pass, plan, shape, element, target); };
  double clocks = (plan.keys.size() - 1) * launchClocks;
  if (plan.keysOfGroups->addsToQ)
    clocks += of(AttentionPass::Queries);
  for (size_t number = 0; number < plan.keys.size(); ++number)
    clocks += of(passOfKeys(plan, number));
  return clocks < costOfKeys(op, *plan.keysOfGroups, shape, plan.order, target).clocks;
}

LogicalResult attention::lowerGpuBackward(func::FuncOp kernel, AttentionGradOp op,
                                          const GpuTarget &target, ModuleOp entries,
                                          GpuKernel &info) {
  Shape shape = getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType());
  Type element = cast<RankedTensorType>(op.getQ().getType()).getElementType();
  std::optional<Sm80Backward> plan = chooseBackward(shape, element, target);
  assert(plan && "whyNoGpuKernel has said so");
  plan->keysOfGroups = chooseSm90Keys(op, target);
  if (plan->keysOfGroups) {
    FailureOr<KeyOrder> order = chooseSm90KeyOrder(op, *plan->keysOfGroups, shape, target);
    if (failed(order))
      return failure();
    plan->order = *order;
    plan->tablesOfGroups = chooseSm90Tables(op, target);
    placeSm90Scratch(*plan, shape);
    const Sm90Keys &keys = *plan->keysOfGroups;
    if ((keys.sharesKeys || !keys.addsToQ) && !kernel->hasAttr(attentionOrderAttr) &&
        isSlowerThanMma(op, *plan, shape, element, target)) {
      plan->placeNorms(shape, plan->rowStride);
      plan->keysOfGroups.reset();
    }
  }
  if (element.isF32() && target.hasWarpgroups())
    chooseSm90Wide(
        *plan, op, target,
        [&](AttentionPass pass) { return clocksOfMma(op, pass, *plan, shape, element, target); },
        normCost(shape.batch * shape.heads * shape.rows, shape, element, target).clocks +
            launchClocks);
  // The warps of the kernel that computes dQ sum the contributions of a head.
  auto warpsOf = [&](int64_t blockRows, int64_t warps) {
    return static_cast<int64_t>(llvm::divideCeil(shape.rows, blockRows)) * warps;
  };
  const std::optional<Sm90Wide> &wide = plan->wideQueries;
  int64_t warps = wide ? warpsOf(wide->blockRows(), wide->consumerWarps())
                       : warpsOf(plan->queries.blockRows(), plan->queries.warps),
          keyBlocks = 0;
  if (plan->keysOfGroups && plan->keysOfGroups->addsToQ) {
    keyBlocks = plan->order.keyBlocks;
    warps = keyBlocks * plan->keysOfGroups->consumerWarps();
  }
  Sm80Captures captures(op, shape, warps, keyBlocks, plan->scratchBytes);
  info.scratchBytes = captures.scratchBytes();
  Sm80Problem problem{*plan, shape, op, kernel, captures};
  BackwardLaunches launches(problem, target, entries, info);
  if (!captures.empty())
    launches.around(captures.clearBlocks(), &Sm80Captures::emitClear);
  launches.gradients();
  if (captures.hasTables())
    launches.tables();
  launches.around(captures.scatterBlocks(), &Sm80Captures::emitScatter);
  launches.around(captures.convertBlocks(), &Sm80Captures::emitConvert);
  return success();
}
