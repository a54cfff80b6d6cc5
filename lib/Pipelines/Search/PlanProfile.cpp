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
// 3. Kernels are slower beside transfers, which occupy multiprocessors. A kernel that waits for its
//    launch or for memory absorbs a part of that (MainBlock::Beside).
// 4. `crowds` has the seconds of kernels by the bytes that are alive beside them.
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
const std::string &StructureReader::describeTables(const StepOptions &options,
                                                   const MeshRanks &mesh, int state) {
  int64_t parts = state > 1 ? mesh.replicate : 1;
  auto [found, isNew] = tables.try_emplace({mesh.shard, parts});
  std::string &text = found->second;
  if (!isNew)
    return text;
  for (auto function : imported.getOps<func::FuncOp>())
    for (BlockArgument argument : function.getArguments())
      if (isa<RankedTensorType>(argument.getType()))
        if (int64_t size = getRowSize(argument, options.shard.gatherRows, mesh.shard, parts))
          text += " " + std::to_string(argument.getArgNumber()) + "x" + std::to_string(size);
  // The number of exchanged rows grows with the number of shards.
  if (!text.empty())
    text += " of " + std::to_string(mesh.shard);
  return text;
}

PlanStructure StructureReader::read(const Candidate &candidate) {
  const StepOptions &options = candidate.options;
  const Strategy &strategy = getStrategy(options.shard.strategy);
  const Reshard &reshard = options.shard.reshardAfterForward;
  MeshRanks mesh = getMeshRanks(options);
  PlanStructure structure;
  structure.mesh = mesh;
  bool splits = structure.splitsParameters = mesh.countPieces(strategy.parameters) > 1;
  structure.splitsGradients = mesh.countPieces(strategy.gradients) > 1;
  structure.sharding = splits ? "parameters" : "whole";
  if (structure.splitsGradients)
    structure.sharding += ", gradients";
  // Parameters that are not split may be converted again in the backward.
  if (strategy.reshard && reshard.again)
    structure.sharding += ", again within " + std::to_string(reshard.within);
  if (splits)
    structure.sharding += describeTables(options, mesh, strategy.state);
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

SmallVector<double> PlanProfile::getOccupiedParts(const Cluster &cluster) {
  SmallVector<double> parts{0};
  for (const ClusterLink &link : cluster.links)
    if (cluster.multiprocessors > link.multiprocessors && link.multiprocessors > 0)
      parts.push_back(static_cast<double>(link.multiprocessors) /
                      static_cast<double>(cluster.multiprocessors));
  return parts;
}

/// Returns the seconds of a kernel that runs `turns` times.
static KernelSeconds getKernelSeconds(const fsdpcommon::KernelTime &time, double products,
                                      double turns, bool isInBlock) {
  double work = std::max(time.busySeconds, time.memorySeconds);
  return {turns * time.seconds,
          products,
          turns * std::max(0.0, time.seconds - work),
          {turns * time.memorySeconds, turns * (work - time.busySeconds)},
          isInBlock};
}

/// The state of a visit of all commands of a program.
struct PlanProfile::Visit {
  Visit(PlanProfile &profile, ModuleOp planned, LayoutOp layout, ProgramOp step,
        const Candidate &candidate, const Cluster &cluster)
      : profile(profile), step(step), candidate(candidate), cluster(cluster),
        mesh(getMeshRanks(candidate.options)), occupied(getOccupiedParts(cluster)),
        kernels(planned, layout,
                mesh.countPieces(getStrategy(candidate.options.shard.strategy).parameters) > 1,
                mesh.tensor, occupied),
        costs(cluster), copies(cluster, /*copies=*/true) {}

  void addLaunch(LaunchOp launch, double turns, bool isInBlock);
  void addCopy(CopyOp copy, double turns);
  void addExchange(CollectiveOp collective, double turns, bool isInBlock);
  void addTransfer(CollectiveOp collective, UnitOp unit, double turns, bool isInBlock);
  void finishTransfers();

  PlanProfile &profile;
  ProgramOp step;
  const Candidate &candidate;
  const Cluster &cluster;
  MeshRanks mesh;
  SmallVector<double> occupied;
  FixedKernels kernels;
  CostModel costs, copies;
  SymbolTableCollection tables;
  /// Gathers and exchanges, with the number of their transfer and that of the kernel after them.
  SmallVector<std::tuple<CollectiveOp, unsigned, unsigned>> gathers;
  /// By buffer, the collectives that read it.
  llvm::MapVector<Attribute, std::pair<SliceAttr, SmallVector<std::pair<SliceAttr, unsigned>>>>
      kept;
  /// By transfer, the buffer that it holds, and the number of the kernel after it.
  SmallVector<std::tuple<unsigned, SliceAttr, unsigned>> held;
  /// By unit, how often it is gathered, and its bytes.
  llvm::MapVector<Operation *, std::pair<double, double>> gathered;
};

void PlanProfile::Visit::addLaunch(LaunchOp launch, double turns, bool isInBlock) {
  auto kernel = tables.lookupNearestSymbolFrom<func::FuncOp>(launch, launch.getKernelAttr());
  SmallVector<Access> accesses = getAccesses(launch, tables);
  MultiplyAdds work = countMultiplyAdds(kernel);
  double products = turns * (static_cast<double>(work.wide) / cluster.wideMultiplyAdds +
                             static_cast<double>(work.bf16) / cluster.narrowMultiplyAdds);
  profile.productSeconds += products;
  if (kernels.isFixed(accesses))
    kernels.add(accesses,
                getKernelSeconds(costs.getKernelTime(launch), products, turns, isInBlock));
}

void PlanProfile::Visit::addCopy(CopyOp copy, double turns) {
  BufferOp source = kernels.getBuffer(copy.getSource()),
           target = kernels.getBuffer(copy.getTarget());
  if (getInFlightId(copy) && getMemory(source) != getMemory(target) &&
      cluster.hostBytesPerSecond > 0 && source.getCategory() == Category::activations &&
      target.getCategory() == Category::activations && turns == 1)
    profile.hostSeconds +=
        static_cast<double>(copy.getSource().getBytes()) / cluster.hostBytesPerSecond;
  if (!source.isPersistent() && getMemory(source) == getMemory(target))
    kernels.addCopy(copy);
}

/// Adds a collective of activations.
void PlanProfile::Visit::addExchange(CollectiveOp collective, double turns, bool isInBlock) {
  double seconds =
      std::min(getPayloadSeconds(costs, collective), getPayloadSeconds(copies, collective));
  auto axis = cast<StringAttr>(collective.getAxes()[0]).getValue();
  kernels.addExchange(collective, turns * seconds, axis == contextAxis, isInBlock);
  Transfer exchange;
  exchange.turns = turns;
  exchange.exchange = seconds;
  exchange.isInBlock = isInBlock;
  exchange.head = kernels.getHead(collective.getSource());
  exchange.multiprocessors = static_cast<double>(
      std::min(costs.getMultiprocessors(collective), copies.getMultiprocessors(collective)));
  gathers.push_back({collective, profile.transfers.size(), kernels.getNumber()});
  profile.transfers.push_back(exchange);
}

void PlanProfile::Visit::addTransfer(CollectiveOp collective, UnitOp unit, double turns,
                                     bool isInBlock) {
  SliceAttr source = collective.getSource(), target = collective.getTarget();
  Transfer transfer = describe(collective, unit, mesh, turns);
  transfer.isInBlock = isInBlock;
  auto microBatches = static_cast<double>(candidate.options.shard.gradAccum);
  bool isOverAll = transfer.overShard && transfer.within == 0;
  unsigned number = kernels.getNumber();
  kernels.setFilled(source, getFilledPart(unit));
  kernels.setFilled(target, getFilledPart(unit));
  if (!transfer.isPiece)
    held.push_back({profile.transfers.size(), transfer.isGather ? target : source, number});
  if (transfer.isGather) {
    kept[source.getBuffer()].first = source;
    kept[source.getBuffer()].second.push_back({target, number});
    gathers.push_back({collective, profile.transfers.size(), number});
    auto &[runs, bytes] = gathered[unit];
    if (isOverAll) {
      if (profile.structure.splitsParameters)
        transfer.sharedTurns = std::clamp(microBatches - runs, 0.0, turns) / microBatches;
      runs += turns;
      bytes = transfer.bytes;
    }
  } else {
    transfer.head = kernels.getHead(source);
    // With --grad-sync=auto, gradients that are split are reduced in each micro-batch.
    if (isOverAll && !transfer.overReplicate && profile.structure.splitsGradients &&
        candidate.options.shard.gradSync != GradSync::Last)
      transfer.sharedTurns = turns / microBatches;
  }
  profile.transfers.push_back(transfer);
}

/// Measures what depends on commands that follow a transfer.
void PlanProfile::Visit::finishTransfers() {
  for (auto [collective, number, kernel] : gathers)
    profile.transfers[number].tail = kernels.getTail(collective.getTarget(), kernel);
  for (auto &[buffer, reader] : kept)
    kernels.addKept(reader.first, reader.second);
  for (auto [number, slice, kernel] : held) {
    Transfer &transfer = profile.transfers[number];
    if (kernels.isTransient(slice) && (transfer.isGather ? kernels.isUnusedBefore(slice, kernel)
                                                         : kernels.isUnusedFrom(slice, kernel)))
      transfer.held = transfer.bytes;
  }
  // A unit that is gathered more than once in a micro-batch is gathered again in the backward.
  for (const auto &[unit, runs] : gathered)
    if (profile.structure.gathersAgain && runs.first > candidate.options.shard.gradAccum)
      profile.regathered += static_cast<int64_t>(runs.second);
}

void PlanProfile::addCommands(ModuleOp planned, LayoutOp layout, ProgramOp step,
                              const Candidate &candidate, const Cluster &cluster) {
  Visit visit(*this, planned, layout, step, candidate, cluster);
  auto loops = llvm::to_vector(step.getBody().front().getOps<LoopOp>());
  Block *main = loops.empty()       ? &step.getBody().front()
                : loops.size() == 1 ? &loops.front().getBody().front()
                                    : nullptr;
  for (const NumberedCommand &command : numberCommands(step)) {
    auto turns = static_cast<double>(command.turns);
    bool isInBlock = command.op->getBlock() == main;
    if (auto launch = dyn_cast<LaunchOp>(command.op))
      visit.addLaunch(launch, turns, isInBlock);
    if (auto copy = dyn_cast<CopyOp>(command.op))
      visit.addCopy(copy, turns);
    auto collective = dyn_cast<CollectiveOp>(command.op);
    if (!collective)
      continue;
    auto unit = collective.getUnitAttr()
                    ? visit.tables.lookupNearestSymbolFrom<UnitOp>(step, collective.getUnitAttr())
                    : UnitOp();
    // Without a unit, activations that the axes `tensor` and `context` exchange.
    auto first = cast<StringAttr>(collective.getAxes()[0]).getValue();
    if (!unit && collective.getAxes().size() == 1 && (first == contextAxis || first == tensorAxis))
      visit.addExchange(collective, turns, isInBlock);
    if (unit && !collective.getRows())
      visit.addTransfer(collective, unit, turns, isInBlock);
  }
  visit.finishTransfers();
  FixedKernels &kernels = visit.kernels;
  if (main)
    block = kernels.getBlock(loops.empty() ? 1 : static_cast<double>(loops.front().getCount()));
  crowds = kernels.getCrowds();
  fixedSeconds = kernels.getSeconds();
  stalledSeconds = kernels.getStalledSeconds();
  sharedSeconds = kernels.getSharedSeconds();
  liveBytes = kernels.getLiveBytes();
  sharedBytes = kernels.getLiveBytes(/*onlyShared=*/true);
  keptBytes = kernels.getLiveBytes(/*onlyShared=*/true,
                                   std::max(keptKernels, kernels.getNumber() / keptPart));
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
