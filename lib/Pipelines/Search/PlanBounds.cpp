//===- PlanBounds.cpp - Bounds from the plan of another candidate ---------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. The bound of the time is that of one machine for all transfers (Timeline.h), or the time of
//    copies of activations to the host and back. Kernels also wait for the collectives of the axes
//    `context` and `tensor`, which are the same for all meshes with as many ranks on these axes.
//    Transfers slow kernels down, because they occupy multiprocessors (getSecondsBeside). In a plan
//    that fits, large transfers do not run beside kernels that leave less memory
//    (getCrowdedSeconds).
// 2. The bound of the arena is the states' bytes, which follow from the mesh and the strategy, plus
//    the peak of the buffers that each kernel needs from its first to its last use. Both leave out
//    padding and the bytes of transfers that run early.
// 3. A plan bounds the state of candidates with other ranks on the axis `tensor`, too: a rank of T
//    has at least 1/T of each tensor.
// 4. A plan also bounds the time of candidates of its sharding that keep fewer results for the
//    backward or offload activations, because these only add kernels and copies. A plan without
//    recomputation bounds the time of all other candidates with the same or more parts of
//    activations by its multiply-adds, because a step of each trains on the same samples.
//    Its products, with half of the sums over `tensor` and 1/T of other kernels, bound the time of
//    the same axes with --sequence-parallel, and products alone that of a ring.
// 5. Of another sharding or of more ranks on the axes, only kernels of activations count, a gather
//    of parameters and a reduction of gradients in each micro-batch, and the larger one of
//    activations kept for the backward and parameters that stay gathered until then.
//
// O(transfers log transfers) for a bound.
//
//===----------------------------------------------------------------------===//

#include "PlanProfile.h"
#include "fsdp/Analysis/Cost.h"
#include "fsdp/Analysis/Timeline.h"
#include "fsdp/Plan/Checkpointing.h"
#include "fsdp/Shard/PlacementChoice.h"

using namespace mlir;
using namespace mlir::fsdp;

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

/// Returns whether the plan keeps all results that a candidate with the policy `its` keeps, and
/// whether the candidate keeps all that the plan keeps.
std::pair<bool, bool> PlanProfile::compareKept(StringRef its) const {
  auto [found, isNew] = keptOf.try_emplace(its);
  if (isNew)
    found->second = {keepsAllOf(structure.checkpointing, its),
                     keepsAllOf(its, structure.checkpointing)};
  return found->second;
}

std::pair<int64_t, int64_t> PlanProfile::Transfer::getRing(const MeshRanks &mesh) const {
  int64_t ranks = (!overShard ? 1
                   : within   ? within
                              : mesh.shard) *
                  (overReplicate ? mesh.replicate : 1);
  return {ranks, mesh.tensor * (overShard ? 1 : mesh.shard)};
}

double PlanProfile::Transfer::getOccupied(const MeshRanks &mesh, const Cluster &cluster) const {
  if (cluster.multiprocessors == 0)
    return 0;
  auto [ranks, stride] = getRing(mesh);
  double number = multiprocessors;
  if (exchange == 0)
    number = isGather && cluster.canCopy(ranks, stride)
                 ? 0
                 : static_cast<double>(getRingMultiprocessors(cluster, ranks, stride));
  return number / static_cast<double>(cluster.multiprocessors);
}

double PlanProfile::Transfer::getSeconds(const MeshRanks &mesh, const Cluster &cluster) const {
  if (exchange > 0)
    return exchange;
  auto [ranks, stride] = getRing(mesh);
  double payload = bytes / (isPiece ? static_cast<double>(mesh.shard) : 1);
  unsigned rounds = isTwice ? 2 : 1;
  double seconds = getRingSeconds(cluster, payload, ranks, stride, rounds) -
                   getRingSeconds(cluster, 0, ranks, stride, rounds);
  if (isGather && cluster.canCopy(ranks, stride))
    seconds = std::min(seconds,
                       getCopySeconds(cluster, payload, ranks) - getCopySeconds(cluster, 0, ranks));
  return seconds;
}

/// Returns the seconds of the transfers that every sharding has. The candidates of a group, which
/// follow each other, have the same ones.
double PlanProfile::getSharedTransfers(const Candidate &candidate, const PlanStructure &other,
                                       const Cluster &cluster) const {
  if (lastGroup == candidate.group)
    return lastSeconds;
  double seconds = 0;
  for (const Transfer &transfer : transfers)
    if (transfer.sharedTurns > 0 &&
        (transfer.isGather ? other.splitsParameters : other.splitsGradients))
      seconds += transfer.sharedTurns * transfer.getSeconds(other.mesh, cluster);
  lastGroup = candidate.group;
  return lastSeconds = seconds * static_cast<double>(candidate.options.shard.gradAccum);
}

/// Raises bounds of a candidate whose structure is not that of the plan. `isPart` says whether the
/// plan keeps all results that the candidate keeps. Of a tensor of which a rank of the plan has a
/// part, a rank of the candidate has at least 1/parts.
void PlanProfile::addForeignBounds(PlanBounds &bounds, const Candidate &candidate,
                                   const PlanStructure &other, bool isPart, int64_t parts,
                                   const Cluster &cluster) const {
  const ActivationSplit &own = structure.split, &its = other.split;
  bool addsRows = its.rows && !own.rows, addsRing = its.ring && !own.ring;
  bool isSplit = own.dividesRanksOf(its);
  // Products of a ring are counted for each block of keys.
  if (isPart && structure.checkpointing == "none" && isSplit && own.ring <= its.ring)
    bounds.seconds = productSeconds;
  if (isPart && own.hasRanksOf(its) && own.addsAtMost(its))
    bounds.seconds = std::max(bounds.seconds, sharedSeconds[addsRows + 2 * addsRing]);
  bounds.seconds = std::max(bounds.seconds, getSharedTransfers(candidate, other, cluster) /
                                                static_cast<double>(parts));
  int64_t activations = 0;
  if (structure.checkpointing == other.checkpointing && own == its &&
      structure.offloadsActivations == other.offloadsActivations)
    activations = sharedBytes;
  else if (isSplit && !other.offloadsActivations && compareKept(other.checkpointing).second)
    // Values that are whole become rows, and gathered keys and values become blocks.
    activations = keptBytes / (its.context / (addsRing ? 1 : own.context)) /
                  (its.tensor / (addsRows ? 1 : own.tensor));
  // Their peaks may be at different moments.
  bounds.bytes += std::max(
      activations, other.keptGathers > 0 ? regathered / other.keptGathers / parts : int64_t(0));
}

PlanProfile::Jobs PlanProfile::getJobs(const PlanStructure &other, const Cluster &cluster) const {
  const MeshRanks &mesh = other.mesh;
  Jobs jobs;
  for (const Transfer &transfer : transfers) {
    // A strategy that splits the state differently exchanges pieces in another way.
    if (transfer.isPiece && transfer.exchange == 0 && structure.state != other.state)
      continue;
    double seconds = transfer.getSeconds(mesh, cluster);
    if (seconds <= 0)
      continue;
    // In a loop, the first gather and the last reduction have at least this tail or head.
    jobs.all.push_back({transfer.head, seconds, transfer.tail});
    if (transfer.turns > 1)
      jobs.all.push_back({0, seconds * (transfer.turns - 1), 0});
    jobs.held.push_back({transfer.held, seconds * transfer.turns});
    if (!transfer.isInBlock)
      continue;
    auto inTurn = [&](double whole, double outside) {
      return std::clamp((whole - outside) / block.turns, 0.0, block.seconds);
    };
    jobs.ofBlock.push_back(
        {inTurn(transfer.head, block.before), seconds, inTurn(transfer.tail, block.after)});
    jobs.occupied.push_back(transfer.getOccupied(mesh, cluster));
  }
  return jobs;
}

/// Returns for how much longer a block takes whose kernels cannot run until jobs have ended: `part`
/// of the seconds of those jobs with at least some tail, less the seconds of the kernels that are
/// not in this tail (at most `mostLost`). With `LinkJob::head`, the kernels are before the jobs.
static double getGain(ArrayRef<LinkJob> jobs, double LinkJob::*tail, double kernels, double part,
                      double mostLost) {
  SmallVector<LinkJob> sorted(jobs);
  llvm::sort(sorted, [&](const LinkJob &a, const LinkJob &b) { return a.*tail > b.*tail; });
  double gain = 0, sum = 0;
  for (const LinkJob &job : sorted) {
    sum += job.seconds;
    double lost = kernels - job.*tail;
    if (lost <= mostLost)
      gain = std::max(gain, part * sum - lost);
  }
  return gain;
}

/// Returns a bound of the time of a step in which transfers occupy multiprocessors. Transfers share
/// the links, so that at each moment, kernels lose at least the average of their parts. Counted is
/// at most the part `most` of each. Kernels lose nothing in the seconds `absorbed` and while none
/// runs: before the first gathers and after the last reductions of a turn have ended.
double PlanProfile::getSecondsBeside(const Jobs &jobs, const Cluster &cluster) const {
  if (block.turns * block.seconds <= 0)
    return 0;
  double bound =
      fixedSeconds + block.turns * (getLowerBound(block.seconds, jobs.ofBlock) - block.seconds);
  // Gathers and reductions that lose less than half of the kernels each differ.
  double slack = block.seconds * 1e-9, half = block.seconds * 0.499;
  for (auto [part, beside] : llvm::zip_equal(getOccupiedParts(cluster), block.beside)) {
    double most = part, lost = -beside.absorbed - slack;
    for (auto [job, its] : llvm::zip_equal(jobs.ofBlock, jobs.occupied))
      lost += job.seconds * std::min(its, most);
    auto getGains = [&](double mostLost) {
      return getGain(jobs.ofBlock, &LinkJob::tail, block.seconds, 1 - most, mostLost) +
             getGain(jobs.ofBlock, &LinkJob::head, block.seconds, 1 - most, mostLost);
    };
    bound = std::max({bound, fixedSeconds + block.turns * (lost + getGains(half)),
                      beside.seconds + block.turns * (lost + getGains(slack))});
  }
  return bound;
}

/// Returns a bound of the time of a step whose transient buffers have `space` bytes: transfers that
/// hold more bytes than a kernel leaves free do not run beside this kernel.
double PlanProfile::getCrowdedSeconds(Jobs &jobs, double space) const {
  llvm::sort(jobs.held, std::greater<>());
  double kernels = 0, sum = 0, most = 0;
  for (const Crowd &crowd : crowds)
    kernels += crowd.seconds;
  size_t last = crowds.size();
  for (auto [bytes, seconds] : jobs.held) {
    sum += seconds;
    for (; last > 0 && crowds[last - 1].bytes + bytes <= space; --last)
      kernels -= crowds[last - 1].seconds;
    most = std::max(most, kernels + sum);
  }
  return most;
}

PlanBounds PlanProfile::getBounds(const Candidate &candidate, const PlanStructure &other,
                                  const Cluster &cluster, bool withTime) const {
  const StepOptions &options = candidate.options;
  const Strategy &strategy = getStrategy(options.shard.strategy);
  const OffloadKinds &offload = options.plan.offload;
  const MeshRanks &mesh = other.mesh;
  PlanBounds bounds;
  // Of a tensor of which a rank of `structure` has a part, a rank of `other` has at least 1/parts.
  int64_t own = structure.split.tensor, its = other.split.tensor;
  int64_t parts = its % own == 0 ? its / own : own % its == 0 ? 1 : its;
  auto addState = [&](const StateBytes &state, int axes, bool isOffloaded) {
    if (!isOffloaded)
      bounds.bytes += (state.whole + state.split / mesh.countPieces(axes)) / parts;
  };
  addState(parameters, strategy.parameters, offload.parameters);
  addState(optimizer, strategy.state, offload.optimizer);
  addState(masters, strategy.state, offload.parameters || offload.optimizer);
  double space = static_cast<double>(options.plan.memoryLimit - bounds.bytes);
  bool isSame = structure == other;
  bool isPart = !structure.offloadsActivations && compareKept(other.checkpointing).first;
  if (isSame)
    bounds.bytes += liveBytes;
  else
    addForeignBounds(bounds, candidate, other, isPart, parts, cluster);
  if (!withTime || (!isSame && (!isPart || structure.sharding != other.sharding ||
                                !(structure.split == other.split)))) {
    bounds.seconds = withTime ? bounds.seconds : 0;
    return bounds;
  }
  Jobs jobs = getJobs(other, cluster);
  bounds.seconds = std::max({bounds.seconds, stalledSeconds, getLowerBound(fixedSeconds, jobs.all),
                             getSecondsBeside(jobs, cluster), isSame ? hostSeconds : 0});
  if (isSame && options.plan.memoryLimit > 0)
    bounds.fittingSeconds = getCrowdedSeconds(jobs, space);
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
                                      {"turns", t.turns},
                                      {"shared_turns", t.sharedTurns},
                                      {"gather", t.isGather},
                                      {"in_block", t.isInBlock},
                                      {"held", t.held},
                                      {"exchange", t.exchange},
                                      {"multiprocessors", t.multiprocessors}});
  llvm::json::Array rows, beside;
  for (auto [seconds, absorbed] : block.beside)
    beside.push_back(llvm::json::Array{seconds, absorbed});
  for (const Crowd &crowd : crowds)
    rows.push_back(llvm::json::Array{crowd.bytes, crowd.seconds});
  auto state = [](const StateBytes &bytes) {
    return llvm::json::Object{{"split", bytes.split}, {"whole", bytes.whole}};
  };
  return llvm::json::Object{
      {"sharding", structure.sharding},
      {"checkpointing", structure.checkpointing},
      {"offloads", structure.offloadsActivations},
      {"state", structure.state},
      {"context", structure.split.context},
      {"tensor", structure.split.tensor},
      {"ring", structure.split.ring},
      {"rows", structure.split.rows},
      {"fixed", fixedSeconds},
      {"stalled", stalledSeconds},
      {"block", llvm::json::Array{block.turns, block.before, block.after, block.seconds}},
      {"beside", std::move(beside)},
      {"crowds", std::move(rows)},
      {"products", productSeconds},
      {"shared", llvm::json::Array(sharedSeconds)},
      {"host", hostSeconds},
      {"live", liveBytes},
      {"shared_bytes", sharedBytes},
      {"kept", keptBytes},
      {"regathered", regathered},
      {"kept_gathers", structure.keptGathers},
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
  profile.structure = {
      object.getString("sharding")->str(),
      object.getString("checkpointing")->str(),
      object.getBoolean("offloads").value_or(false),
      static_cast<int>(object.getInteger("state").value_or(0)),
      {object.getInteger("context").value_or(1), object.getInteger("tensor").value_or(1),
       object.getBoolean("ring").value_or(false), object.getBoolean("rows").value_or(false)},
      object.getInteger("kept_gathers").value_or(0),
      /*gathersAgain=*/false,
      /*splitsParameters=*/false,
      /*splitsGradients=*/false,
      MeshRanks()};
  profile.fixedSeconds = object.getNumber("fixed").value_or(0);
  profile.stalledSeconds = object.getNumber("stalled").value_or(0);
  double *block[] = {&profile.block.turns, &profile.block.before, &profile.block.after,
                     &profile.block.seconds};
  for (auto [seconds, value] : llvm::zip_equal(block, *object.getArray("block")))
    *seconds = value.getAsNumber().value_or(0);
  auto readPairs = [&](StringRef name, auto &pairs) {
    for (const llvm::json::Value &value : *object.getArray(name)) {
      const llvm::json::Array &row = *value.getAsArray();
      pairs.push_back({row[0].getAsNumber().value_or(0), row[1].getAsNumber().value_or(0)});
    }
  };
  readPairs("crowds", profile.crowds);
  readPairs("beside", profile.block.beside);
  profile.productSeconds = object.getNumber("products").value_or(0);
  for (auto [seconds, value] : llvm::zip_equal(profile.sharedSeconds, *object.getArray("shared")))
    seconds = value.getAsNumber().value_or(0);
  profile.hostSeconds = object.getNumber("host").value_or(0);
  profile.liveBytes = object.getInteger("live").value_or(0);
  profile.sharedBytes = object.getInteger("shared_bytes").value_or(0);
  profile.keptBytes = object.getInteger("kept").value_or(0);
  profile.regathered = object.getInteger("regathered").value_or(0);
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
    t.sharedTurns = row.getNumber("shared_turns").value_or(0);
    t.isGather = row.getBoolean("gather").value_or(false);
    t.isInBlock = row.getBoolean("in_block").value_or(false);
    t.held = row.getNumber("held").value_or(0);
    t.exchange = row.getNumber("exchange").value_or(0);
    t.multiprocessors = row.getNumber("multiprocessors").value_or(0);
    profile.transfers.push_back(t);
  }
  return profile;
}
