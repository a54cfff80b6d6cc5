//===- PlanProfile.cpp - Measures of a plan that bound others -------------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures of a plan from which PlanBounds.cpp derives lower bounds for other candidates. The
// bounds exclude candidates that cannot be the best.
//
//   kernels    |  F0  |  F1  | B1   | B0   | U |   F, B: fixed, the same for every mesh
//   gather          G1 ------> tail                must end before its first reader, F1
//   reduction        head <----------- R1          begins after the kernel that writes its source
//
// 1. `fixedSeconds` is the time of kernels that access neither gradients, optimizer state, scalars
//    of the step nor shards of parameters. Their operands have the sizes of the model.
// 2. A transfer has the fixed kernels before its source as head, and the fixed kernels from its
//    first reader on as tail. Its time on another mesh is that of its bytes without padding and
//    without latency, because one launch may start several transfers.
//
// O(commands).
//
//===----------------------------------------------------------------------===//

#include "PlanProfile.h"
#include "fsdp/Analysis/Commands.h"
#include "fsdp/Analysis/Cost.h"
#include "fsdp/Analysis/MultiplyAdds.h"
#include "fsdp/IR/InFlight.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Shard/PlacementChoice.h"
#include "fsdp/Shard/TableRows.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

/// Returns a text that is equal for two meshes only if lookups exchange rows of the same tables.
static std::string describeTables(ModuleOp imported, const StepOptions &options,
                                  const MeshRanks &mesh, int state) {
  std::string text;
  int64_t parts = state > 1 ? mesh.replicate : 1;
  for (auto function : imported.getOps<func::FuncOp>())
    for (BlockArgument argument : function.getArguments())
      if (isa<RankedTensorType>(argument.getType()))
        if (int64_t size = getRowSize(argument, options.shard.gatherRows, mesh.shard, parts))
          text += " " + std::to_string(argument.getArgNumber()) + "x" + std::to_string(size);
  // The number of exchanged rows grows with the number of shards.
  return text.empty() ? "" : text + " of " + std::to_string(mesh.shard);
}

PlanStructure fsdp::getStructure(ModuleOp imported, const Candidate &candidate) {
  const StepOptions &options = candidate.options;
  const Strategy &strategy = getStrategy(options.shard.strategy);
  const Reshard &reshard = options.shard.reshardAfterForward;
  MeshRanks mesh = getMeshRanks(options);
  PlanStructure structure;
  bool splits = structure.splitsParameters = mesh.countPieces(strategy.parameters) > 1;
  structure.splitsGradients = mesh.countPieces(strategy.gradients) > 1;
  structure.sharding = splits ? "parameters" : "whole";
  if (structure.splitsGradients)
    structure.sharding += ", gradients";
  // Parameters that are not split may be converted again in the backward.
  if (strategy.reshard && reshard.again)
    structure.sharding += ", again within " + std::to_string(reshard.within);
  if (splits)
    structure.sharding += describeTables(imported, options, mesh, strategy.state);
  structure.checkpointing = options.plan.checkpointing;
  // The search of `auto` ends with another plan for every mesh.
  if (structure.checkpointing == "auto")
    structure.sharding += " of " + llvm::join(candidate.spelled, " ");
  structure.offloadsActivations = options.plan.offload.activations;
  structure.keptGathers = !splits ? 0 : strategy.reshard && reshard.again ? reshard.within : 1;
  structure.gathersAgain = splits && structure.keptGathers == 0;
  structure.split = getActivationSplit(options);
  structure.state = mesh.countPieces(strategy.state) > 1 ? strategy.state : 0;
  return structure;
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

/// Returns the number of elements of the parameters of a unit without padding.
static int64_t countElements(UnitOp unit) {
  int64_t elements = 0;
  for (auto param : unit.getParams().getAsRange<ParamAttr>())
    elements += param.getType().getNumElements();
  return elements;
}

/// Returns the part of the flat buffer of a unit that is no padding.
static double getFilledPart(UnitOp unit) {
  return unit.getFlatSize()
             ? static_cast<double>(countElements(unit)) / static_cast<double>(unit.getFlatSize())
             : 1;
}

void PlanProfile::addStates(ModuleOp planned, LayoutOp layout, const Candidate &candidate) {
  const Strategy &strategy = getStrategy(candidate.options.shard.strategy);
  for (auto slot : layout.getOps<StateSlotOp>()) {
    auto unit = SymbolTable::lookupNearestSymbolFrom<UnitOp>(planned, slot.getUnitAttr());
    bool isParameter = slot.getRole() == StateRole::parameter;
    StateBytes &state = isParameter                           ? parameters
                        : slot.getRole() == StateRole::master ? masters
                                                              : optimizer;
    int64_t bytes =
        countElements(unit) * getStorageBytes(slot.getTensorType().clone(ArrayRef<int64_t>(1)));
    // A unit of --ignore-params is whole on every rank.
    bool isWhole = isParameter ? strategy.parameters > 0 && unit.getParameterAxes().empty()
                               : strategy.state > 0 && unit.getOptimizerAxes().empty();
    (isWhole ? state.whole : state.split) += bytes;
  }
}

namespace {
/// The time of a sequence of kernels that wait only for collectives of activations.
class Waits {
public:
  void add(ArrayRef<Access> accesses, double own) {
    for (const Access &access : accesses)
      seconds = std::max(seconds, ready.lookup(access.slice.getBuffer().getValue()));
    seconds += own;
    for (const Access &access : accesses)
      if (access.writes)
        ready[access.slice.getBuffer().getValue()] = seconds;
  }
  void addExchange(CollectiveOp op, double own) {
    double end = ready.lookup(op.getSource().getBuffer().getValue()) + own;
    double &target = ready[op.getTarget().getBuffer().getValue()];
    target = std::max(target, end);
  }
  double seconds = 0; ///< end of the last kernel

private:
  llvm::StringMap<double> ready; ///< time at which a buffer has its content
};

/// Times and buffers of the fixed kernels of a program, in the order of the program.
class Kernels {
public:
  Kernels(ModuleOp planned, LayoutOp layout, bool splitsParameters, int64_t tensor)
      : buffers(layout), splitsParameters(splitsParameters), tensor(static_cast<double>(tensor)) {
    for (auto unit : planned.getOps<UnitOp>())
      filled = std::min(filled, getFilledPart(unit));
  }

  BufferOp getBuffer(SliceAttr slice) {
    return buffers.lookup<BufferOp>(slice.getBuffer().getValue());
  }

  /// Returns whether the times of a kernel with these accesses do not depend on the mesh. A kernel
  /// of activations may read a scalar, such as a coordinate of its rank.
  bool isFixed(ArrayRef<Access> accesses) {
    auto is = [&](const Access &access, Category category) {
      return getBuffer(access.slice).getCategory() == category;
    };
    return llvm::none_of(accesses,
                         [&](const Access &access) {
                           return is(access, Category::gradients) ||
                                  is(access, Category::optimizer) ||
                                  (is(access, Category::control) && access.writes) ||
                                  (is(access, Category::parameters) && splitsParameters);
                         }) &&
           llvm::any_of(accesses,
                        [&](const Access &access) { return !is(access, Category::control); });
  }

  /// Adds a fixed kernel, of which `products` seconds are those of its multiply-adds.
  void add(ArrayRef<Access> accesses, double seconds, double products) {
    auto isOfSamples = [&](const Access &access) {
      Category category = getBuffer(access.slice).getCategory();
      return category == Category::activations || category == Category::inputs;
    };
    // Every sharding has the kernels that read samples, but may write their gradients elsewhere.
    bool isShared = llvm::any_of(accesses, [&](const Access &access) {
      return !access.writes && isOfSamples(access) &&
             (getBuffer(access.slice).getCategory() == Category::inputs ||
              uses[access.slice.getBuffer().getValue()].isShared);
    });
    bool writesShared = llvm::all_of(
        accesses, [&](const Access &access) { return !access.writes || isOfSamples(access); });
    if (isShared) {
      double own = writesShared ? seconds : std::min(seconds, products);
      for (auto [way, waits] : llvm::enumerate(shared))
        waits.add(accesses, way == 0       ? own
                            : products > 0 ? std::min(own, products)
                                           : own * (way == 1 ? 1 / tensor : 0));
    }
    stalled.add(accesses, seconds);
    for (const Access &access : accesses) {
      Uses &own = uses[access.slice.getBuffer().getValue()];
      own.numbers.push_back(begins.size());
      if (access.writes) {
        own.written = now + seconds;
        own.isShared |= isShared;
      }
    }
    begins.push_back(now);
    now += seconds;
  }

  /// Adds a collective of activations: kernels wait for its target.
  void addExchange(CollectiveOp op, double seconds, bool isContext) {
    stalled.addExchange(op, seconds);
    // A reduce-scatter, which takes half of the time, begins the exchange of rows.
    for (auto [way, waits] : llvm::enumerate(shared))
      waits.addExchange(op, seconds * (way == 0 ? 1 : isContext ? way == 1 : way & 1 ? 0.5 : 1));
    uses[op.getTarget().getBuffer().getValue()].isShared |=
        uses[op.getSource().getBuffer().getValue()].isShared;
  }

  /// Returns the fixed seconds up to the end of the last kernel that has written to the buffer.
  double getHead(SliceAttr slice) const {
    return uses.lookup(slice.getBuffer().getValue()).written;
  }
  /// Returns the fixed seconds from the first kernel on that accesses the buffer and has at least
  /// the number `number`.
  double getTail(SliceAttr slice, unsigned number) const {
    auto own = uses.find(slice.getBuffer().getValue());
    if (own == uses.end())
      return 0;
    const unsigned *first = llvm::lower_bound(own->second.numbers, number);
    return first == own->second.numbers.end() ? 0 : now - begins[*first];
  }
  double getSeconds() const { return now; }
  /// Returns the fixed seconds with the waits for collectives of activations.
  double getStalledSeconds() const { return stalled.seconds; }
  /// Returns these seconds for the kernels that every sharding has (PlanProfile::sharedSeconds).
  std::array<double, 4> getSharedSeconds() const {
    return {shared[0].seconds, shared[1].seconds, shared[2].seconds, shared[3].seconds};
  }
  unsigned getNumber() const { return begins.size(); } ///< number of the next kernel

  /// Returns the peak of the bytes of transient buffers, or of those activations that every
  /// sharding has. Each is alive from its first to its last kernel, which have at least `least`
  /// kernels between them.
  int64_t getLiveBytes(bool onlyShared = false, unsigned least = 0) {
    std::vector<double> change(begins.size() + 1, 0);
    for (const auto &[name, own] : uses) {
      auto buffer = buffers.lookup<BufferOp>(name);
      Category category = buffer.getCategory();
      bool isPadded = category == Category::gathered || category == Category::staging;
      if (own.numbers.empty() || buffer.isPersistent() || getMemory(buffer) != Memory::device ||
          (!isPadded && category != Category::activations) ||
          (onlyShared && (isPadded || !own.isShared)) ||
          own.numbers.back() - own.numbers.front() < least)
        continue;
      double bytes = static_cast<double>(buffer.getBytes()) * (isPadded ? filled : 1);
      change[own.numbers.front()] += bytes;
      change[own.numbers.back() + 1] -= bytes;
    }
    double live = 0, peak = 0;
    for (double bytes : change)
      peak = std::max(peak, live += bytes);
    return static_cast<int64_t>(peak * (1 - 1e-9)); // the sum is rounded
  }

private:
  /// Numbers of the kernels that access a buffer, the fixed seconds up to the last write, and
  /// whether every sharding has the kernel that writes it.
  struct Uses {
    SmallVector<unsigned> numbers;
    double written = 0;
    bool isShared = false;
  };
  SymbolTable buffers;
  bool splitsParameters;
  double tensor;     ///< ranks of the axis
  double filled = 1; ///< least part of a unit that is no padding
  llvm::StringMap<Uses> uses;
  SmallVector<double> begins; ///< fixed seconds before each kernel
  double now = 0;
  Waits stalled;
  std::array<Waits, 4> shared;
};
} // namespace

/// Fewest kernels between the first and the last use of a buffer that is kept for the backward, and
/// their part of all kernels. Results of the loss, whose kernels depend on the axes, live shorter.
static constexpr unsigned keptKernels = 16, keptPart = 32;

PlanProfile::Transfer PlanProfile::describe(CollectiveOp collective, UnitOp unit,
                                            const MeshRanks &mesh, double turns) {
  Transfer transfer;
  for (StringRef axis : collective.getAxes().getAsValueRange<StringAttr>()) {
    auto [name, ranks] = axis.split(':');
    transfer.overShard |= name == "shard" || name == contextAxis;
    transfer.overReplicate |= name == "replicate";
    if (name == contextAxis)
      transfer.within = mesh.context;
    (void)ranks.getAsInteger(10, transfer.within);
  }
  transfer.isTwice = collective.getKind() == CollectiveKind::all_reduce;
  transfer.isGather = collective.getKind() == CollectiveKind::all_gather;
  transfer.isPiece = !transfer.overShard;
  transfer.turns = turns;
  transfer.bytes = getFilledPart(unit) * (transfer.isPiece ? static_cast<double>(mesh.shard) : 1) *
                   static_cast<double>(std::max(collective.getSource().getBytes(),
                                                collective.getTarget().getBytes()));
  return transfer;
}

/// Returns the seconds of a collective without its latency.
static double getPayloadSeconds(CostModel &costs, CollectiveOp op) {
  return costs.getSeconds(op) - costs.getLatency(op);
}

void PlanProfile::addCommands(ModuleOp planned, LayoutOp layout, ProgramOp step,
                              const Candidate &candidate, const Cluster &cluster) {
  const Strategy &strategy = getStrategy(candidate.options.shard.strategy);
  MeshRanks mesh = getMeshRanks(candidate.options);
  Kernels kernels(planned, layout, mesh.countPieces(strategy.parameters) > 1, mesh.tensor);
  CostModel costs(cluster), copies(cluster, /*copies=*/true);
  SymbolTableCollection tables;
  // Gathers, with the number of their transfer and that of the kernel after them.
  SmallVector<std::tuple<CollectiveOp, unsigned, unsigned>> gathers;
  // By unit, how often it is gathered, and its bytes.
  llvm::MapVector<Operation *, std::pair<double, double>> gathered;
  for (const NumberedCommand &command : numberCommands(step)) {
    auto turns = static_cast<double>(command.turns);
    if (auto launch = dyn_cast<LaunchOp>(command.op)) {
      auto kernel = tables.lookupNearestSymbolFrom<func::FuncOp>(launch, launch.getKernelAttr());
      SmallVector<Access> accesses = getAccesses(launch, tables);
      MultiplyAdds work = countMultiplyAdds(kernel);
      double products = turns * (static_cast<double>(work.wide) / cluster.wideMultiplyAdds +
                                 static_cast<double>(work.bf16) / cluster.narrowMultiplyAdds);
      productSeconds += products;
      if (kernels.isFixed(accesses))
        kernels.add(accesses, turns * costs.getKernelSeconds(kernel), products);
    } else if (auto copy = dyn_cast<CopyOp>(command.op)) {
      BufferOp source = kernels.getBuffer(copy.getSource()),
               target = kernels.getBuffer(copy.getTarget());
      if (getInFlightId(copy) && getMemory(source) != getMemory(target) &&
          cluster.hostBytesPerSecond > 0 && source.getCategory() == Category::activations &&
          target.getCategory() == Category::activations && command.turns == 1)
        hostSeconds +=
            static_cast<double>(copy.getSource().getBytes()) / cluster.hostBytesPerSecond;
    } else if (auto collective = dyn_cast<CollectiveOp>(command.op)) {
      auto unit = collective.getUnitAttr()
                      ? tables.lookupNearestSymbolFrom<UnitOp>(step, collective.getUnitAttr())
                      : UnitOp();
      // Without a unit, activations that the axes `tensor` and `context` exchange.
      auto first = cast<StringAttr>(collective.getAxes()[0]).getValue();
      if (!unit && collective.getAxes().size() == 1 &&
          (first == contextAxis || first == tensorAxis))
        kernels.addExchange(collective,
                            turns * std::min(getPayloadSeconds(costs, collective),
                                             getPayloadSeconds(copies, collective)),
                            first == contextAxis);
      if (!unit || collective.getRows())
        continue;
      Transfer transfer = describe(collective, unit, mesh, turns);
      auto microBatches = static_cast<double>(candidate.options.shard.gradAccum);
      bool isOverAll = transfer.overShard && transfer.within == 0;
      if (transfer.isGather) {
        gathers.push_back({collective, transfers.size(), kernels.getNumber()});
        auto &[runs, bytes] = gathered[unit];
        if (isOverAll) {
          if (structure.splitsParameters)
            transfer.sharedTurns = std::clamp(microBatches - runs, 0.0, turns) / microBatches;
          runs += turns;
          bytes = transfer.bytes;
        }
      } else {
        transfer.head = kernels.getHead(collective.getSource());
        // With --grad-sync=auto, gradients that are split are reduced in each micro-batch.
        if (isOverAll && !transfer.overReplicate && structure.splitsGradients &&
            candidate.options.shard.gradSync != GradSync::Last)
          transfer.sharedTurns = turns / microBatches;
      }
      transfers.push_back(transfer);
    }
  }
  for (auto [collective, number, kernel] : gathers)
    transfers[number].tail = kernels.getTail(collective.getTarget(), kernel);
  fixedSeconds = kernels.getSeconds();
  stalledSeconds = kernels.getStalledSeconds();
  sharedSeconds = kernels.getSharedSeconds();
  liveBytes = kernels.getLiveBytes();
  sharedBytes = kernels.getLiveBytes(/*onlyShared=*/true);
  keptBytes = kernels.getLiveBytes(/*onlyShared=*/true,
                                   std::max(keptKernels, kernels.getNumber() / keptPart));
  // A unit that is gathered more than once in a micro-batch is gathered again in the backward.
  for (const auto &[unit, runs] : gathered)
    if (structure.gathersAgain && runs.first > candidate.options.shard.gradAccum)
      regathered += static_cast<int64_t>(runs.second);
}

PlanProfile::PlanProfile(ModuleOp planned, const Candidate &candidate, PlanStructure structure,
                         const Cluster &cluster)
    : structure(std::move(structure)) {
  for (auto program : planned.getOps<ProgramOp>()) {
    if (program.getSymName() != "step")
      continue;
    auto layout = SymbolTable::lookupNearestSymbolFrom<LayoutOp>(program, program.getLayoutAttr());
    addStates(planned, layout, candidate);
    addCommands(planned, layout, program, candidate, cluster);
  }
}
