//===- MemorySearch.cpp - Search for a plan within a limit ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Searches for the data that must not be kept in the arena so that the step fits into the memory
// limit. For every choice that it tries, the search plans, schedules and packs the whole step. It
// compares the sizes of arenas, not sums of buffer sizes.
//
//   bytes per second   item                               R0 = {}       too large
//   saved by each  |   gather h.0 again   h.0 {fc} to host R4 = first 4  fits: bisected
//                  v   h.0 {ln} again     h.0 {fc} again   R4 - {h.0 ln} fits: less time
//
// 1. Collect items. An item is a change of the plan after which some data is not in the arena
//    during a part of the step:
//    - Recompute: repeat a kernel call of the forward in the backward, together with the earlier
//      calls whose results it needs and which are not kept. In each segment (RecomputeGraph.cpp),
//      repeatedly choose the call that frees most additional bytes per second of recomputation.
//    - Offload: copy the results of a call to the host until the backward needs them. The last item
//      copies all other activations that wait long.
//    - Gather again: repeat a gather in the backward instead of keeping the gathered parameters.
// 2. Estimate the cost per byte of copies and of gathers. A schedule overlaps most of their time
//    with computation. Therefore, compare a plan with all items of one `Kind` with the plan without
//    items: the cost is the difference in time, divided by the bytes of these items.
// 3. Sort all items by bytes freed per second. If rates are equal, items of early segments come
//    first, because their values wait longest.
// 4. Search by bisection for the shortest prefix of the list with which the plan fits.
// 5. Try to remove items, beginning at the end of the prefix (expensive items, late segments):
//    first half of the items, then a quarter, and so on. Remove them if the plan still fits. Keep
//    the fastest plan that fits.
// 6. If the plan with all items does not fit, run steps 3 to 5 for three parts of the list, and
//    keep the fastest plan. The parts are the items without recomputation, the items without
//    copies, and the items without copies of results that are also recomputed. (A copy of such a
//    result frees nothing and occupies the arena too early.)
// 7. If no plan fits, repeat steps 1 to 6 with schedules that stay within the limit even if they
//    hide fewer transfers.
//
// Step 4 makes O(log items) plans. Step 5 ends after `maxPlans` plans of steps 1 to 6.
//
//===----------------------------------------------------------------------===//

#include "MemorySearch.h"
#include "RecomputeGraph.h"
#include "RepeatedGathers.h"
#include "fsdp/Analysis/Cost.h"
#include "fsdp/Analysis/Schedule.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/Plan/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr unsigned maxPlans = 36;
/// In step 6, the smallest plan is preferred if it takes at most `nearlyEqual` times as long as the
/// fastest plan, because the workspace of kernels is added to the arena later.
static constexpr double nearlyEqual = 1.02;
/// Minimum that is assumed for the time to move a byte, in seconds. Without it, the cost of a
/// transfer that is hidden completely would be 0.
static constexpr double leastSecondsPerByte = 1e-18;

SmallVector<Block *> fsdp::getStepBlocks(func::FuncOp function) {
  SmallVector<Block *> blocks{&function.getBody().front()};
  function.walk([&](scf::ForOp loop) { blocks.push_back(loop.getBody()); });
  return blocks;
}

/// Applies the choice of gathers last, because keepGathers() may erase a call of the graph: a
/// conversion of the shard.
int64_t fsdp::applyChoice(func::FuncOp function, unsigned block, const MemoryChoice &choice) {
  Block &body = *getStepBlocks(function)[block];
  Aliasing aliasing(function);
  RecomputeGraph graph(body, aliasing);
  int64_t saved = graph.getSavedBytes(llvm::BitVector(choice.recomputed.size())) -
                  graph.getSavedBytes(choice.recomputed);
  for (unsigned call : choice.offloaded.set_bits()) {
    graph.getCalls()[call].op->setAttr(offloadAttr, UnitAttr::get(function.getContext()));
    saved += choice.recomputed[call] ? 0 : graph.getCalls()[call].savedBytes;
  }
  if (choice.offloadsRest)
    function->setAttr(offloadAttr, UnitAttr::get(function.getContext()));
  graph.apply(choice.recomputed);
  keepGathers(body, choice.kept);
  return saved;
}

namespace {

struct Item {
  enum class Kind { recompute, offload, gather, rest } kind = Kind::recompute;
  // Indices of the calls that the item recomputes or offloads, or index of the gather that the item
  // repeats.
  SmallVector<unsigned, 4> numbers;
  unsigned segment = 0;
  int64_t bytes = 0;
  double bytesPerSecond = 0;

  /// Returns the key by which items with equal bytes per second are sorted.
  auto getPlace() const { return std::make_tuple(segment, kind, numbers.front()); }
};

class Search {
public:
  Search(func::FuncOp step, const Cluster &cluster, const MemorySearchOptions &options,
         bool atAllCosts);
  FailureOr<FoundChoice> run();

private:
  FailureOr<FoundChoice> finish(FoundChoice choice);
  double getSeconds(const llvm::BitVector &calls) const;
  void addClosure(unsigned call, const llvm::BitVector &taken, llvm::BitVector &closure) const;
  std::optional<Item> findBest(unsigned segment, const llvm::BitVector &taken) const;
  void findCalls();
  void findCopies();
  void findGathers();
  LogicalResult rate(Item::Kind kind, const FoundChoice &none);
  FailureOr<FoundChoice> plan(const llvm::BitVector &taken);
  FailureOr<FoundChoice> planFirst(unsigned count);
  LogicalResult pack(FoundChoice &choice, int64_t enough);
  FailureOr<FoundChoice> bisect(FoundChoice all, unsigned &count);
  LogicalResult dropNeedless(unsigned count, unsigned mostPlans, FoundChoice &best);
  FailureOr<FoundChoice> findFastest(FoundChoice all, unsigned mostPlans);
  FailureOr<FoundChoice> searchParts();

  func::FuncOp step;
  const Cluster &cluster;
  const MemorySearchOptions &options;
  bool atAllCosts;
  unsigned blockIndex = 0, plans = 0;
  std::unique_ptr<RecomputeGraph> graph;
  SmallVector<RepeatedGather> gathers;
  SmallVector<double> seconds; // seconds by call
  SmallVector<Item> items;
  FoundChoice smallest;               // the choice with the smallest arena so far
  std::optional<FoundChoice> fastest; // the fastest choice so far that fits
};

} // namespace

/// Selects the block with the most bytes that must be kept from the forward to the backward.
Search::Search(func::FuncOp step, const Cluster &cluster, const MemorySearchOptions &options,
               bool atAllCosts)
    : step(step), cluster(cluster), options(options), atAllCosts(atAllCosts) {
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
  if (options.keepGathers)
    gathers = findRepeatedGathers(*getStepBlocks(step)[blockIndex]);
  CostModel costs(cluster);
  SymbolTableCollection tables;
  for (const RecomputeGraph::Call &call : graph->getCalls()) {
    KernelCallOp op = call.op;
    seconds.push_back(costs.getKernelSeconds(
        tables.lookupNearestSymbolFrom<func::FuncOp>(op, op.getKernelAttr())));
  }
}

FailureOr<FoundChoice> Search::run() {
  findCalls();
  findCopies();
  findGathers();
  FailureOr<FoundChoice> none = planFirst(0);
  if (failed(none))
    return failure();
  if (none->bytes <= options.limit)
    return finish(*none);
  FailureOr<FoundChoice> all = planFirst(items.size());
  if (failed(all) || failed(rate(Item::Kind::offload, *none)) ||
      failed(rate(Item::Kind::gather, *none)))
    return failure();
  bool fits = all->bytes < none->bytes && all->bytes <= options.limit;
  FailureOr<FoundChoice> best = fits ? findFastest(*all, maxPlans) : searchParts();
  if (failed(best))
    return failure();
  if (fastest && fastest->seconds < best->seconds)
    best = *fastest;
  if (!fits && smallest.bytes <= options.limit && smallest.seconds <= best->seconds * nearlyEqual)
    best = smallest;
  return finish(*best);
}

/// Returns the fastest plan of the current items that fits (steps 3 to 5 of the file header). `all`
/// is the plan with all items. The search ends when it has made `mostPlans` plans.
FailureOr<FoundChoice> Search::findFastest(FoundChoice all, unsigned mostPlans) {
  llvm::sort(items, [](const Item &a, const Item &b) {
    return a.bytesPerSecond != b.bytesPerSecond ? a.bytesPerSecond > b.bytesPerSecond
                                                : a.getPlace() < b.getPlace();
  });
  unsigned count = 0;
  FailureOr<FoundChoice> best = bisect(std::move(all), count);
  if (failed(best) || failed(dropNeedless(count, mostPlans, *best)))
    return failure();
  return best;
}

/// Searches parts of the list (step 6). If no part fits, returns the smallest choice that was
/// tried.
FailureOr<FoundChoice> Search::searchParts() {
  using Kind = Item::Kind;
  llvm::BitVector recomputed(graph->getCalls().size());
  for (const Item &item : items)
    if (item.kind == Kind::recompute)
      for (unsigned call : item.numbers)
        recomputed.set(call);
  const std::function<bool(const Item &)> leftOut[] = {
      [](const Item &item) { return item.kind == Kind::recompute; },
      [](const Item &item) { return item.kind == Kind::offload || item.kind == Kind::rest; },
      [&](const Item &item) {
        return item.kind == Kind::offload && recomputed[item.numbers.front()];
      }};
  const SmallVector<Item> whole = items;
  std::optional<FoundChoice> best;
  for (auto [number, isLeftOut] : llvm::enumerate(leftOut)) {
    items = whole;
    llvm::erase_if(items, isLeftOut);
    if (items.empty() || items.size() == whole.size())
      continue;
    FailureOr<FoundChoice> choice = planFirst(items.size());
    if (succeeded(choice) && choice->bytes > options.limit)
      continue;
    if (succeeded(choice))
      choice = findFastest(*choice, (number + 1) * maxPlans / std::size(leftOut));
    if (failed(choice))
      return failure();
    if (!best || choice->seconds < best->seconds)
      best = *choice;
  }
  return best ? *best : smallest;
}

/// Packs the arena of the choice once more, into as few bytes as possible. (During the search,
/// packing stops as soon as it is known whether the choice fits.)
FailureOr<FoundChoice> Search::finish(FoundChoice choice) {
  if (failed(pack(choice, /*enough=*/0)))
    return failure();
  choice.plans = plans;
  choice.numCalls = graph->getCalls().size();
  choice.numGathers = gathers.size();
  return choice;
}

double Search::getSeconds(const llvm::BitVector &calls) const {
  double sum = 0;
  for (unsigned call : calls.set_bits())
    sum += seconds[call];
  return sum;
}

/// Adds a call to `closure`, unless it is in `taken`. Also adds those earlier calls of the segment
/// that are not kept and whose results the call needs.
void Search::addClosure(unsigned call, const llvm::BitVector &taken,
                        llvm::BitVector &closure) const {
  if (closure[call] || taken[call])
    return;
  closure.set(call);
  for (unsigned producer : graph->getCalls()[call].producers)
    if (graph->isCandidate(producer) &&
        graph->getCalls()[producer].segment == graph->getCalls()[call].segment &&
        !graph->getCalls()[producer].isSaved)
      addClosure(producer, taken, closure);
}

void Search::findCalls() {
  for (unsigned segment = 0; segment + 1 < graph->getNumSegments(); ++segment) {
    llvm::BitVector taken(graph->getCalls().size());
    double least = std::numeric_limits<double>::infinity();
    while (std::optional<Item> item = findBest(segment, taken)) {
      for (unsigned call : item->numbers)
        taken.set(call);
      least = item->bytesPerSecond = std::min(least, item->bytesPerSecond);
      items.push_back(*item);
    }
  }
}

std::optional<Item> Search::findBest(unsigned segment, const llvm::BitVector &taken) const {
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
    best = Item{Item::Kind::recompute,
                SmallVector<unsigned, 4>(closure.set_bits_begin(), closure.set_bits_end()), segment,
                freed, static_cast<double>(freed) / cost};
  }
  return best;
}

/// Collects copies to the host as items. The items include copies of results of the last segments.
/// Only the plan of the copies shows whether these results wait long enough to be copied.
void Search::findCopies() {
  if (!options.offload)
    return;
  for (auto [number, call] : llvm::enumerate(graph->getCalls()))
    if (call.isSaved && call.savedBytes >= options.minBytes)
      items.push_back(
          {Item::Kind::offload, {static_cast<unsigned>(number)}, call.segment, call.savedBytes, 0});
  items.push_back({Item::Kind::rest, {0}, graph->getNumSegments(), 0, 0});
}

void Search::findGathers() {
  for (auto [number, gather] : llvm::enumerate(gathers)) {
    int64_t bytes = 0;
    for (Type type : UnshardOp(gather.first)->getResultTypes())
      bytes += getStorageBytes(cast<RankedTensorType>(type));
    auto place = static_cast<unsigned>(number);
    items.push_back({Item::Kind::gather, {place}, place, bytes, 0});
  }
}

/// Estimates the cost per byte of the items of one kind (step 2). `none` is the plan without items.
LogicalResult Search::rate(Item::Kind kind, const FoundChoice &none) {
  llvm::BitVector taken(items.size());
  int64_t bytes = 0;
  for (auto [number, item] : llvm::enumerate(items)) {
    if (item.kind != kind)
      continue;
    taken.set(number);
    bytes += item.bytes;
  }
  if (taken.none())
    return success();
  FailureOr<FoundChoice> with = plan(taken);
  if (failed(with))
    return failure();
  double perByte =
      std::max(leastSecondsPerByte, (with->seconds - none.seconds) / static_cast<double>(bytes));
  for (unsigned number : taken.set_bits())
    items[number].bytesPerSecond = 1 / perByte;
  return success();
}

FailureOr<FoundChoice> Search::planFirst(unsigned count) {
  llvm::BitVector taken(items.size());
  taken.set(0, count);
  return plan(taken);
}

FailureOr<FoundChoice> Search::plan(const llvm::BitVector &taken) {
  FoundChoice choice;
  choice.block = blockIndex;
  choice.recomputed.resize(graph->getCalls().size());
  choice.offloaded.resize(graph->getCalls().size());
  choice.kept.resize(gathers.size(), true);
  for (unsigned item : taken.set_bits())
    for (unsigned number : items[item].numbers)
      switch (items[item].kind) {
      case Item::Kind::recompute:
        choice.recomputed.set(number);
        break;
      case Item::Kind::offload:
        choice.offloaded.set(number);
        break;
      case Item::Kind::gather:
        choice.kept.reset(number);
        break;
      case Item::Kind::rest:
        choice.offloadsRest = true;
        break;
      }
  choice.recomputed = graph->getNeeded(choice.recomputed);
  ++plans;
  if (failed(pack(choice, options.limit)))
    return failure();
  if (plans == 1 || choice.bytes < smallest.bytes)
    smallest = choice;
  if (choice.bytes <= options.limit && (!fastest || choice.seconds < fastest->seconds))
    fastest = choice;
  return choice;
}

/// Returns the estimated duration of a step in seconds. If the program has a schedule, this is the
/// duration of the schedule, otherwise the sum over all commands.
static double estimateSeconds(ProgramOp program, const Cluster &cluster) {
  if (auto schedule = program->getAttrOfType<DictionaryAttr>(scheduleAttr))
    return schedule.getAs<FloatAttr>("scheduled").getValueAsDouble();
  CostModel costs(cluster);
  double seconds = 0;
  for (Operation &command : program.getBody().front())
    seconds += costs.getSeconds(&command);
  return seconds;
}

/// Determines the size of the arena and the time of a choice. For this purpose, plans the step in a
/// new module that contains nothing else and in which kernels have no bodies.
LogicalResult Search::pack(FoundChoice &choice, int64_t enough) {
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
  applyChoice(cast<func::FuncOp>(copy->lookupSymbol(step.getName())), blockIndex, choice);
  PassManager pm(copy->getContext(), ModuleOp::getOperationName());
  pm.enableVerifier(false);
  pm.addNestedPass<func::FuncOp>(createSinkToUsesPass());
  pm.addPass(createAssignBuffersPass());
  options.addSchedule(pm, atAllCosts);
  pm.addPass(createPackArenasPass({enough}));
  if (failed(pm.run(*copy)))
    return failure();
  auto layouts = copy->getOps<LayoutOp>();
  auto programs = copy->getOps<ProgramOp>();
  if (layouts.empty() || programs.empty())
    return step.emitError("expected a program and its arena from the plan of @") << step.getName();
  choice.bytes = static_cast<int64_t>((*layouts.begin()).getArenaBytes());
  choice.seconds = estimateSeconds(*programs.begin(), cluster);
  return success();
}

/// Sets `count` to the number of items in the shortest prefix of the list that fits (step 4).
FailureOr<FoundChoice> Search::bisect(FoundChoice all, unsigned &count) {
  unsigned low = 0; // number of items of the largest prefix that is known not to fit
  count = items.size();
  FoundChoice best = std::move(all);
  while (count - low > 1) {
    unsigned middle = (low + count) / 2;
    FailureOr<FoundChoice> choice = planFirst(middle);
    if (failed(choice))
      return failure();
    bool fits = choice->bytes <= options.limit;
    (fits ? count : low) = middle;
    if (fits && choice->seconds <= best.seconds)
      best = *choice;
  }
  return best;
}

/// Tries to remove items from the first `count` items, as long as the plan fits the limit (step 5
/// of the file header).
LogicalResult Search::dropNeedless(unsigned count, unsigned mostPlans, FoundChoice &best) {
  llvm::BitVector taken(items.size());
  taken.set(0, count);
  for (size_t chunk = std::max<size_t>(1, count / 2), at = 0; at < count && plans < mostPlans;) {
    // Remove items from the end of the prefix. These items are the most expensive or, among items
    // with equal rates, belong to the latest segments.
    llvm::BitVector fewer = taken;
    size_t end = std::min<size_t>(at + chunk, count);
    fewer.reset(count - end, count - at);
    FailureOr<FoundChoice> choice = plan(fewer);
    if (failed(choice))
      return failure();
    if (choice->bytes <= options.limit) {
      taken = fewer;
      if (choice->seconds < best.seconds)
        best = *choice;
      at = end;
    } else if (chunk > 1) {
      chunk /= 2;
    } else {
      ++at; // the plan does not fit without this item
      chunk = std::max<size_t>(1, (count - at) / 8);
    }
  }
  return success();
}

FailureOr<FoundChoice> fsdp::searchMemory(func::FuncOp step, const Cluster &cluster,
                                          const MemorySearchOptions &options) {
  FailureOr<FoundChoice> choice = Search(step, cluster, options, /*atAllCosts=*/false).run();
  if (failed(choice) || choice->bytes <= options.limit || !options.schedules)
    return choice;
  return Search(step, cluster, options, /*atAllCosts=*/true).run();
}
