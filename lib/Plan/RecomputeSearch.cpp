//===- RecomputeSearch.cpp - What to compute again under a limit *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The arena decides, not a sum of sizes: every set that is tried is planned and packed.
//
//   bytes per second   item                          R0 = {}       too large
//   saved by each  |   h.0 {ln}  h.1 {ln} ..         R4 = first 4  fits: bisected
//                  v   h.0 {fc}  h.1 {fc} ..         R4 - {h.1 fc} fits: cheaper
//
//  1. Items: in each segment, again and again the call that frees most bytes for its time, with the calls before
//     it whose results are not kept. What one frees beside the others is what counts.
//  2. All items by bytes per second, those of early segments first (they wait longest).
//  3. The shortest list from the front that fits: bisection.
//  4. Items that are not needed after all: from the most expensive on, and late segments first, drop as many as
//     still fit, first half of them, then a quarter, ...
//
// O(log items) plans for 3, at most `maxPlans` for 4. Not done here: gathers that are kept instead of repeated.
//
//===----------------------------------------------------------------------===//

#include "RecomputeSearch.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/Plan/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr unsigned maxPlans = 28;

SmallVector<Block *> fsdp::getStepBlocks(func::FuncOp function) {
  SmallVector<Block *> blocks{&function.getBody().front()};
  function.walk([&](scf::ForOp loop) { blocks.push_back(loop.getBody()); });
  return blocks;
}

namespace {

struct Item {
  SmallVector<unsigned, 4> calls;
  unsigned segment = 0;
  double seconds = 0, bytesPerSecond = 0;
};

class Search {
public:
  Search(func::FuncOp step, CostModel &costs, int64_t limit, llvm::function_ref<void(OpPassManager &)> addSchedule)
      : step(step), limit(limit), addSchedule(addSchedule) {
    Aliasing aliasing(step);
    int64_t most = -1;
    for (auto [index, block] : llvm::enumerate(getStepBlocks(step))) {
      auto candidate = std::make_unique<RecomputeGraph>(*block, aliasing);
      int64_t bytes = candidate->getSavedBytes(llvm::BitVector(candidate->getCalls().size()));
      if (bytes <= most)
        continue;
      most = bytes;
      blockIndex = index;
      graph = std::move(candidate);
    }
    for (const RecomputeGraph::Call &call : graph->getCalls()) {
      KernelCallOp op = call.op;
      seconds.push_back(costs.getKernelSeconds(tables.lookupNearestSymbolFrom<func::FuncOp>(op, op.getKernelAttr())));
    }
  }

  FailureOr<RecomputeChoice> run() {
    findItems();
    FailureOr<RecomputeChoice> all = plan(items.size()), none = plan(0);
    if (failed(all) || failed(none))
      return failure();
    if (none->bytes <= limit || none->bytes <= all->bytes)
      return finish(*none);
    if (all->bytes > limit)
      return finish(*all);
    unsigned low = 0, high = items.size(); // the first does not fit, the last does
    RecomputeChoice best = *all;
    while (high - low > 1) {
      unsigned middle = (low + high) / 2;
      FailureOr<RecomputeChoice> choice = plan(middle);
      if (failed(choice))
        return failure();
      (choice->bytes <= limit ? high : low) = middle;
      if (choice->bytes <= limit)
        best = *choice;
    }
    if (failed(dropNeedless(high, best)))
      return failure();
    return finish(best);
  }

private:
  RecomputeChoice finish(RecomputeChoice choice) {
    choice.plans = plans;
    return choice;
  }

  double getSeconds(const llvm::BitVector &calls) const {
    double sum = 0;
    for (unsigned call : calls.set_bits())
      sum += seconds[call];
    return sum;
  }

  /// `call`, and the calls of its segment before it whose results would not be there.
  void addClosure(unsigned call, const llvm::BitVector &taken, llvm::BitVector &closure) const {
    if (closure[call] || taken[call])
      return;
    closure.set(call);
    for (unsigned producer : graph->getCalls()[call].producers)
      if (graph->isCandidate(producer) && graph->getCalls()[producer].segment == graph->getCalls()[call].segment &&
          !graph->getCalls()[producer].isSaved)
        addClosure(producer, taken, closure);
  }

  /// Steps 1 and 2.
  void findItems() {
    unsigned size = graph->getCalls().size();
    for (unsigned segment = 0; segment + 1 < graph->getNumSegments(); ++segment) {
      llvm::BitVector taken(size);
      double least = std::numeric_limits<double>::infinity();
      while (std::optional<Item> item = findBest(segment, taken)) {
        for (unsigned call : item->calls)
          taken.set(call);
        least = item->bytesPerSecond = std::min(least, item->bytesPerSecond);
        items.push_back(*item);
      }
    }
    llvm::sort(items, [](const Item &a, const Item &b) {
      return std::make_tuple(-a.bytesPerSecond, a.segment, a.calls.front()) <
             std::make_tuple(-b.bytesPerSecond, b.segment, b.calls.front());
    });
  }

  std::optional<Item> findBest(unsigned segment, const llvm::BitVector &taken) const {
    std::optional<Item> best;
    int64_t before = graph->getSavedBytes(taken);
    double spent = getSeconds(graph->getNeeded(taken));
    for (unsigned call = 0; call < taken.size(); ++call) {
      if (graph->getCalls()[call].segment != segment || !graph->isCandidate(call) || taken[call] ||
          !graph->getCalls()[call].isSaved)
        continue;
      llvm::BitVector closure(taken.size()), with = taken;
      addClosure(call, taken, closure);
      with |= closure;
      int64_t freed = before - graph->getSavedBytes(with);
      double cost = std::max(1e-12, getSeconds(graph->getNeeded(with)) - spent);
      if (freed <= 0 || (best && freed / cost <= best->bytesPerSecond))
        continue;
      best = Item{SmallVector<unsigned, 4>(closure.set_bits_begin(), closure.set_bits_end()), segment, cost,
                  static_cast<double>(freed) / cost};
    }
    return best;
  }

  /// The first `count` items.
  FailureOr<RecomputeChoice> plan(unsigned count) {
    llvm::BitVector taken(items.size());
    taken.set(0, count);
    return plan(taken);
  }

  FailureOr<RecomputeChoice> plan(const llvm::BitVector &taken) {
    llvm::BitVector calls(graph->getCalls().size());
    for (unsigned item : taken.set_bits())
      for (unsigned call : items[item].calls)
        calls.set(call);
    calls = graph->getNeeded(calls);
    FailureOr<int64_t> bytes = pack(calls);
    if (failed(bytes))
      return failure();
    return RecomputeChoice{blockIndex, calls, *bytes, getSeconds(calls)};
  }

  /// The arena of the step alone, in a module of its own: kernels without bodies.
  FailureOr<int64_t> pack(const llvm::BitVector &calls) {
    ++plans;
    auto module = step->getParentOfType<ModuleOp>();
    OwningOpRef<ModuleOp> copy = ModuleOp::create(module.getLoc());
    OpBuilder builder(copy->getBodyRegion());
    for (Operation &op : *module.getBody()) {
      auto function = dyn_cast<func::FuncOp>(op);
      if (!function || function == step)
        builder.clone(op);
      else if (function->hasAttr(kernelAttr))
        builder.insert(op.cloneWithoutRegions());
    }
    auto clone = cast<func::FuncOp>(copy->lookupSymbol(step.getName()));
    Aliasing aliasing(clone);
    RecomputeGraph(*getStepBlocks(clone)[blockIndex], aliasing).apply(calls);
    PassManager pm(copy->getContext(), ModuleOp::getOperationName());
    pm.enableVerifier(false);
    pm.addNestedPass<func::FuncOp>(createSinkToUsesPass());
    pm.addPass(createAssignBuffersPass());
    addSchedule(pm);
    pm.addPass(createPackArenasPass());
    if (failed(pm.run(*copy)))
      return failure();
    for (auto layout : copy->getOps<LayoutOp>())
      return static_cast<int64_t>(layout.getArenaBytes());
    return failure();
  }

  /// Step 4, of the first `count` items.
  LogicalResult dropNeedless(unsigned count, RecomputeChoice &best) {
    SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, count));
    llvm::sort(order, [&](unsigned a, unsigned b) {
      return std::make_tuple(items[a].bytesPerSecond, ~items[a].segment, a) <
             std::make_tuple(items[b].bytesPerSecond, ~items[b].segment, b);
    });
    llvm::BitVector taken(items.size());
    taken.set(0, count);
    for (size_t chunk = std::max<size_t>(1, order.size() / 2), at = 0; at < order.size() && plans < maxPlans;) {
      llvm::BitVector fewer = taken;
      size_t end = std::min(at + chunk, order.size());
      for (unsigned item : ArrayRef(order).slice(at, end - at))
        fewer.reset(item);
      FailureOr<RecomputeChoice> choice = plan(fewer);
      if (failed(choice))
        return failure();
      if (choice->bytes <= limit) {
        taken = fewer;
        if (choice->seconds < best.seconds)
          best = *choice;
        at = end;
      } else if (chunk > 1) {
        chunk /= 2;
      } else {
        ++at; // this one is needed
        chunk = std::max<size_t>(1, (order.size() - at) / 8);
      }
    }
    return success();
  }

  func::FuncOp step;
  int64_t limit;
  llvm::function_ref<void(OpPassManager &)> addSchedule;
  unsigned blockIndex = 0, plans = 0;
  std::unique_ptr<RecomputeGraph> graph;
  SmallVector<double> seconds; // by call
  SmallVector<Item> items;
  SymbolTableCollection tables;
};

} // namespace

FailureOr<RecomputeChoice> fsdp::searchRecompute(func::FuncOp step, CostModel &costs, int64_t limit,
                                                 llvm::function_ref<void(OpPassManager &)> addSchedule) {
  return Search(step, costs, limit, addSchedule).run();
}
