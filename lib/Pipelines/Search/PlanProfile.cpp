//===- PlanProfile.cpp - Measures of a plan, and bounds from them ---------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Derives lower bounds for candidates from the plan of another candidate. The bounds exclude
// candidates that cannot be the best.
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
// 3. The bound of the time is that of one machine for all transfers (Timeline.h), or the time of
//    copies of activations to the host and back. Kernels also wait for the collectives of the axes
//    `context` and `tensor`, which are the same for all meshes with as many ranks on these axes.
// 4. The bound of the arena is the states' bytes, which follow from the mesh and the strategy, plus
//    the peak of the buffers that each kernel needs from its first to its last use. Both leave out
//    padding and the bytes of transfers that run early.
// 5. A plan bounds the state of candidates with other ranks on the axis `tensor`, too: a rank of T
//    has at least 1/T of each tensor.
// 6. A plan also bounds the time of candidates of its sharding that keep fewer results for the
//    backward or offload activations, because these only add kernels and copies. A plan without
//    recomputation bounds the time of all other candidates with the same or more parts of
//    activations by its multiply-adds, because a step of each trains on the same samples.
//
// O(commands) for a profile, O(transfers log transfers) for a bound.
//
//===----------------------------------------------------------------------===//

#include "PlanProfile.h"
#include "fsdp/Analysis/Commands.h"
#include "fsdp/Analysis/Cost.h"
#include "fsdp/Analysis/MultiplyAdds.h"
#include "fsdp/Analysis/Timeline.h"
#include "fsdp/IR/InFlight.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Plan/Checkpointing.h"
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
  bool splits = mesh.countPieces(strategy.parameters) > 1;
  structure.sharding = splits ? "parameters" : "whole";
  if (mesh.countPieces(strategy.gradients) > 1)
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
  structure.context = mesh.context;
  structure.tensor = mesh.tensor;
  structure.state = mesh.countPieces(strategy.state) > 1 ? strategy.state : 0;
  return structure;
}

/// Returns whether a plan with the policy `a` of activation checkpointing keeps all results that a
/// plan with the policy `b` keeps.
static bool keepsAllOf(StringRef a, StringRef b) {
  using Mode = CheckpointingPolicy::Mode;
  std::string problem;
  std::optional<CheckpointingPolicy> more = CheckpointingPolicy::parse(a, problem),
                                     fewer = CheckpointingPolicy::parse(b, problem);
  if (!more || !fewer || more->mode == Mode::Auto || fewer->mode == Mode::Auto)
    return false;
  if (more->mode == Mode::None || fewer->mode == Mode::Full)
    return true;
  if (more->mode == Mode::Full || fewer->mode == Mode::None)
    return false;
  return llvm::all_of(fewer->kept, [&](const auto &kind) {
    auto found = more->kept.find(kind.getKey());
    return found != more->kept.end() && kind.getValue() % found->second == 0;
  });
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
/// Times and buffers of the fixed kernels of a program, in the order of the program.
class Kernels {
public:
  Kernels(ModuleOp planned, LayoutOp layout, bool splitsParameters)
      : buffers(layout), splitsParameters(splitsParameters) {
    for (auto unit : planned.getOps<UnitOp>())
      filled = std::min(filled, getFilledPart(unit));
  }

  BufferOp getBuffer(SliceAttr slice) {
    return buffers.lookup<BufferOp>(slice.getBuffer().getValue());
  }

  /// Returns whether the times of a kernel with these accesses do not depend on the mesh.
  bool isFixed(ArrayRef<Access> accesses) {
    return llvm::none_of(accesses, [&](const Access &access) {
      Category category = getBuffer(access.slice).getCategory();
      return category == Category::gradients || category == Category::optimizer ||
             category == Category::control ||
             (category == Category::parameters && splitsParameters);
    });
  }

  /// Adds a fixed kernel.
  void add(ArrayRef<Access> accesses, double seconds) {
    for (const Access &access : accesses)
      stalled = std::max(stalled, uses[access.slice.getBuffer().getValue()].ready);
    stalled += seconds;
    for (const Access &access : accesses) {
      Uses &own = uses[access.slice.getBuffer().getValue()];
      own.numbers.push_back(begins.size());
      if (access.writes) {
        own.written = now + seconds;
        own.ready = stalled;
      }
    }
    begins.push_back(now);
    now += seconds;
  }

  /// Adds a collective of activations: kernels wait for its target.
  void addExchange(CollectiveOp op, double seconds) {
    double ready = uses[op.getSource().getBuffer().getValue()].ready + seconds;
    Uses &target = uses[op.getTarget().getBuffer().getValue()];
    target.ready = std::max(target.ready, ready);
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
  double getStalledSeconds() const { return stalled; }
  unsigned getNumber() const { return begins.size(); } ///< number of the next kernel

  /// Returns the peak of the bytes of transient buffers. Each is alive from its first to its last
  /// kernel.
  int64_t getLiveBytes() {
    std::vector<double> change(begins.size() + 1, 0);
    for (const auto &[name, own] : uses) {
      auto buffer = buffers.lookup<BufferOp>(name);
      Category category = buffer.getCategory();
      bool isPadded = category == Category::gathered || category == Category::staging;
      if (own.numbers.empty() || buffer.isPersistent() || getMemory(buffer) != Memory::device ||
          (!isPadded && category != Category::activations))
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
  /// Numbers of the kernels that access a buffer, and the fixed seconds up to the last write,
  /// without and with waits.
  struct Uses {
    SmallVector<unsigned> numbers;
    double written = 0, ready = 0;
  };
  SymbolTable buffers;
  bool splitsParameters;
  double filled = 1; ///< least part of a unit that is no padding
  llvm::StringMap<Uses> uses;
  SmallVector<double> begins; ///< fixed seconds before each kernel
  double now = 0, stalled = 0;
};
} // namespace

void PlanProfile::addCommands(ModuleOp planned, LayoutOp layout, ProgramOp step,
                              const Candidate &candidate, const Cluster &cluster) {
  const Strategy &strategy = getStrategy(candidate.options.shard.strategy);
  MeshRanks mesh = getMeshRanks(candidate.options);
  Kernels kernels(planned, layout, mesh.countPieces(strategy.parameters) > 1);
  CostModel costs(cluster);
  SymbolTableCollection tables;
  bool hasLoops = !step.getBody().front().getOps<LoopOp>().empty();
  // Gathers, with the number of their transfer and that of the kernel after them.
  SmallVector<std::tuple<CollectiveOp, unsigned, unsigned>> gathers;
  for (const NumberedCommand &command : numberCommands(step)) {
    auto turns = static_cast<double>(command.turns);
    if (auto launch = dyn_cast<LaunchOp>(command.op)) {
      auto kernel = tables.lookupNearestSymbolFrom<func::FuncOp>(launch, launch.getKernelAttr());
      SmallVector<Access> accesses = getAccesses(launch, tables);
      if (kernels.isFixed(accesses))
        kernels.add(accesses, turns * costs.getKernelSeconds(kernel));
      MultiplyAdds work = countMultiplyAdds(kernel);
      productSeconds += turns * (static_cast<double>(work.wide) / cluster.wideMultiplyAdds +
                                 static_cast<double>(work.bf16) / cluster.narrowMultiplyAdds);
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
                            turns * (costs.getSeconds(collective) - costs.getLatency(collective)));
      if (!unit || collective.getRows())
        continue;
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
      transfer.isPiece = !transfer.overShard;
      transfer.turns = turns;
      transfer.bytes = getFilledPart(unit) *
                       (transfer.isPiece ? static_cast<double>(mesh.shard) : 1) *
                       static_cast<double>(std::max(collective.getSource().getBytes(),
                                                    collective.getTarget().getBytes()));
      if (!hasLoops && collective.getKind() == CollectiveKind::all_gather)
        gathers.push_back({collective, transfers.size(), kernels.getNumber()});
      else if (!hasLoops)
        transfer.head = kernels.getHead(collective.getSource());
      transfers.push_back(transfer);
    }
  }
  for (auto [collective, number, kernel] : gathers)
    transfers[number].tail = kernels.getTail(collective.getTarget(), kernel);
  fixedSeconds = kernels.getSeconds();
  stalledSeconds = kernels.getStalledSeconds();
  liveBytes = kernels.getLiveBytes();
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

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

PlanBounds PlanProfile::getBounds(const Candidate &candidate, const PlanStructure &other,
                                  const Cluster &cluster) const {
  const StepOptions &options = candidate.options;
  const Strategy &strategy = getStrategy(options.shard.strategy);
  const OffloadKinds &offload = options.plan.offload;
  MeshRanks mesh = getMeshRanks(options);
  PlanBounds bounds;
  // Of a tensor of which a rank of `structure` has a part, a rank of `other` has at least 1/parts.
  int64_t parts = other.tensor % structure.tensor == 0   ? other.tensor / structure.tensor
                  : structure.tensor % other.tensor == 0 ? 1
                                                         : other.tensor;
  auto addState = [&](const StateBytes &state, int axes, bool isOffloaded) {
    if (!isOffloaded)
      bounds.bytes += (state.whole + state.split / mesh.countPieces(axes)) / parts;
  };
  addState(parameters, strategy.parameters, offload.parameters);
  addState(optimizer, strategy.state, offload.optimizer);
  addState(masters, strategy.state, offload.parameters || offload.optimizer);
  bool isSame = structure == other;
  bool isPart =
      !structure.offloadsActivations && keepsAllOf(structure.checkpointing, other.checkpointing);
  if (isPart && structure.checkpointing == "none" && structure.isSplitBy(other))
    bounds.seconds = productSeconds;
  if (!isSame && (!isPart || structure.sharding != other.sharding || !structure.hasAxesOf(other)))
    return bounds;
  SmallVector<LinkJob> jobs;
  for (const Transfer &transfer : transfers) {
    // A strategy that splits the state differently exchanges pieces in another way.
    if (transfer.isPiece && structure.state != other.state)
      continue;
    int64_t ranks = (!transfer.overShard ? 1
                     : transfer.within   ? transfer.within
                                         : mesh.shard) *
                    (transfer.overReplicate ? mesh.replicate : 1);
    int64_t stride = mesh.tensor * (transfer.overShard ? 1 : mesh.shard);
    double bytes = transfer.bytes / (transfer.isPiece ? static_cast<double>(mesh.shard) : 1);
    unsigned rounds = transfer.isTwice ? 2 : 1;
    double seconds = getRingSeconds(cluster, bytes, ranks, stride, rounds) -
                     getRingSeconds(cluster, 0, ranks, stride, rounds);
    if (seconds > 0)
      jobs.push_back({transfer.head, seconds * transfer.turns, transfer.tail});
  }
  bounds.seconds = std::max({bounds.seconds, stalledSeconds, getLowerBound(fixedSeconds, jobs)});
  if (isSame) {
    bounds.seconds = std::max(bounds.seconds, hostSeconds);
    bounds.bytes += liveBytes;
  }
  return bounds;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

llvm::json::Value PlanProfile::toJson() const {
  llvm::json::Array list;
  for (const Transfer &t : transfers)
    list.push_back(llvm::json::Object{{"shard", t.overShard},
                                      {"replicate", t.overReplicate},
                                      {"within", t.within},
                                      {"twice", t.isTwice},
                                      {"piece", t.isPiece},
                                      {"bytes", t.bytes},
                                      {"head", t.head},
                                      {"tail", t.tail},
                                      {"turns", t.turns}});
  auto state = [](const StateBytes &bytes) {
    return llvm::json::Object{{"split", bytes.split}, {"whole", bytes.whole}};
  };
  return llvm::json::Object{{"sharding", structure.sharding},
                            {"checkpointing", structure.checkpointing},
                            {"offloads", structure.offloadsActivations},
                            {"state", structure.state},
                            {"context", structure.context},
                            {"tensor", structure.tensor},
                            {"fixed", fixedSeconds},
                            {"stalled", stalledSeconds},
                            {"products", productSeconds},
                            {"host", hostSeconds},
                            {"live", liveBytes},
                            {"parameters", state(parameters)},
                            {"optimizer", state(optimizer)},
                            {"masters", state(masters)},
                            {"transfers", std::move(list)}};
}

PlanProfile PlanProfile::fromJson(const llvm::json::Object &object) {
  PlanProfile profile;
  auto state = [&](StringRef name) {
    const llvm::json::Object &bytes = *object.getObject(name);
    return StateBytes{bytes.getInteger("split").value_or(0), bytes.getInteger("whole").value_or(0)};
  };
  profile.structure = {object.getString("sharding")->str(),
                       object.getString("checkpointing")->str(),
                       object.getBoolean("offloads").value_or(false),
                       static_cast<int>(object.getInteger("state").value_or(0)),
                       object.getInteger("context").value_or(1),
                       object.getInteger("tensor").value_or(1)};
  profile.fixedSeconds = object.getNumber("fixed").value_or(0);
  profile.stalledSeconds = object.getNumber("stalled").value_or(0);
  profile.productSeconds = object.getNumber("products").value_or(0);
  profile.hostSeconds = object.getNumber("host").value_or(0);
  profile.liveBytes = object.getInteger("live").value_or(0);
  profile.parameters = state("parameters");
  profile.optimizer = state("optimizer");
  profile.masters = state("masters");
  for (const llvm::json::Value &value : *object.getArray("transfers")) {
    const llvm::json::Object &row = *value.getAsObject();
    Transfer t;
    t.overShard = row.getBoolean("shard").value_or(false);
    t.overReplicate = row.getBoolean("replicate").value_or(false);
    t.within = row.getInteger("within").value_or(0);
    t.isTwice = row.getBoolean("twice").value_or(false);
    t.isPiece = row.getBoolean("piece").value_or(false);
    t.bytes = row.getNumber("bytes").value_or(0);
    t.head = row.getNumber("head").value_or(0);
    t.tail = row.getNumber("tail").value_or(0);
    t.turns = row.getNumber("turns").value_or(1);
    profile.transfers.push_back(t);
  }
  return profile;
}
