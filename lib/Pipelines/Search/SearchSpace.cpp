//===- SearchSpace.cpp - Candidates of --search -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   --mesh        --sharding-strategy   --reshard-after-forward |  --activation-checkpointing ..
//   shard=8   --- full_shard        --- true                  --|- none, selective=.., full
//             \                     \-- 4 (a node)            --|- ..
//              \- shard_grad_op     ..        a group           |     a candidate
//   shard=4,tensor=2 --- without, with --sequence-parallel ..
//
// Each dimension is a row of a table: the name of an option, and a function that lists its values
// for the values of earlier dimensions. All candidates train on equal numbers of samples in a step:
// the ranks of the axes `context` and `tensor` read the same samples, so --grad-accum multiplies
// their micro-batches.
//
// The ranks of the axis `tensor` are on the fastest links, because they add activations several
// times in each layer.
//
// Meshes whose groups do not use the links alike have no estimate and are left out, as are
// values that lead to the plan of another candidate:
// - The factors of an axis, as in shard=64x8, change no plan. They only describe the axis. Levels
//   of the cluster enter through groups of neighbours, --reshard-after-forward=N.
// - A strategy is listed once per mesh for each number of pieces of parameters, gradients and
//   state. On a mesh with replicas, hybrid_shard is full_shard. A full_shard that does not gather
//   parameters again is shard_grad_op.
// - Without a memory limit, recomputation and offloading only take time.
//
//===----------------------------------------------------------------------===//

#include "SearchSpace.h"
#include "fsdp/Analysis/Cost.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Pipelines/PlanSearch.h"
#include "fsdp/Shard/MeshSpec.h"
#include "fsdp/Shard/PlacementChoice.h"
#include "fsdpcommon/ClusterFit.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// Numbers and links that determine the values of dimensions.
struct Space {
  int64_t ranks;
  int64_t microBatches; ///< of a step, over all ranks
  const Cluster &cluster;
};

using Values = std::vector<std::string>;

struct Dimension {
  StringRef option;
  /// Lists the values for `options`, in which all earlier dimensions have been set.
  Values (*list)(const Space &space, const StepOptions &options);
  /// Axis without which the option has no effect, or empty.
  StringRef axis = {};
};
} // namespace

MeshRanks fsdp::getMeshRanks(const StepOptions &options) {
  FailureOr<MeshSpec> mesh = parseMeshSpec(options.shard.mesh, [] { return InFlightDiagnostic(); });
  if (failed(mesh))
    return {};
  return {mesh->getShards(), llvm::product_of(mesh->replicate), llvm::product_of(mesh->context),
          llvm::product_of(mesh->tensor)};
}

ActivationSplit fsdp::getActivationSplit(const StepOptions &options) {
  MeshRanks mesh = getMeshRanks(options);
  return {mesh.context, mesh.tensor,
          mesh.context > 1 && options.shard.contextAttention != ContextAttention::Gather,
          mesh.tensor > 1 && options.shard.sequenceParallel};
}

static SmallVector<int64_t> getDivisors(int64_t number) {
  SmallVector<int64_t> divisors;
  for (int64_t divisor = 1; divisor <= number; ++divisor)
    if (number % divisor == 0)
      divisors.push_back(divisor);
  return divisors;
}

/// Returns whether groups of `ranks` neighbours use the fastest links only.
static bool isNear(const Cluster &cluster, int64_t ranks) {
  auto joined = static_cast<int64_t>(cluster.links.front().ranks);
  return ranks <= joined && (joined % ranks == 0 || cluster.links.size() == 1);
}

/// Returns true if all groups of each axis, and of the axes that sum gradients, use the links
/// alike.
static bool isAlike(const Space &space, uint64_t replicate, uint64_t shard, uint64_t context,
                    uint64_t tensor) {
  auto fits = [&](uint64_t ranks, uint64_t stride) {
    return !fsdpcommon::whyNotAlike(space.cluster, "", space.ranks,
                                    {ranks, stride, ranks * stride});
  };
  return fits(tensor, 1) && fits(context, tensor) && fits(shard * context, tensor) &&
         fits(replicate, shard * context * tensor) && fits(replicate * shard * context, tensor);
}

static Values listMeshes(const Space &space, const StepOptions &options) {
  Values meshes;
  bool needsGroups =
      options.isGiven("sharding-strategy") && getStrategy(options.shard.strategy).needsGroups;
  for (int64_t tensor : getDivisors(space.ranks)) {
    if (!isNear(space.cluster, tensor))
      continue;
    for (int64_t context : getDivisors(space.ranks / tensor)) {
      int64_t data = space.ranks / tensor / context;
      for (int64_t replicate : getDivisors(data))
        if ((replicate > 1 || !needsGroups) &&
            isAlike(space, replicate, data / replicate, context, tensor))
          meshes.push_back(formatMesh({{"replicate", replicate},
                                       {"shard", data / replicate},
                                       {contextAxis, context},
                                       {tensorAxis, tensor}}));
    }
  }
  return meshes;
}

/// Returns whether the mesh of the options has several ranks on the axis `context` or `tensor`.
static bool hasAxis(const StepOptions &options, StringRef axis) {
  MeshRanks mesh = getMeshRanks(options);
  return (axis == contextAxis ? mesh.context : mesh.tensor) > 1;
}

bool fsdp::searchHasAxis(const StepOptions &options, const Cluster &cluster, StringRef axis) {
  StepOptions tried = options;
  return llvm::any_of(listMeshes({options.driver.search, 0, cluster}, options),
                      [&](const std::string &mesh) {
                        tried.shard.mesh = mesh;
                        return hasAxis(tried, axis);
                      });
}

static Values listContextAttention(const Space &, const StepOptions &options) {
  return getMeshRanks(options).context > 1 ? Values{"gather", "ring"} : Values{"gather"};
}

/// A file for --tensor-parallel has words for norms.
static Values listRows(const Space &, const StepOptions &options) {
  bool isSearched = getMeshRanks(options).tensor > 1 && options.shard.tensorParallel == "auto";
  return isSearched ? Values{"false", "true"} : Values{"false"};
}

static Values listAccumulation(const Space &space, const StepOptions &options) {
  MeshRanks mesh = getMeshRanks(options);
  return {std::to_string(space.microBatches * mesh.context / (mesh.shard * mesh.replicate))};
}

/// Returns into how many pieces a strategy splits parameters, gradients and optimizer state.
static std::array<int64_t, 3> getPieces(const Strategy &strategy, const MeshRanks &mesh) {
  return {mesh.countPieces(strategy.parameters), mesh.countPieces(strategy.gradients),
          mesh.countPieces(strategy.state)};
}

static Values listStrategies(const Space &, const StepOptions &options) {
  Values names;
  MeshRanks mesh = getMeshRanks(options);
  std::set<std::pair<std::array<int64_t, 3>, bool>> seen;
  bool again =
      options.shard.reshardAfterForward.again && options.shard.reshardAfterForward.within != 1;
  for (const OptionWord &word : getWords<ShardingStrategy>()) {
    const Strategy &strategy = getStrategy(static_cast<ShardingStrategy>(word.index));
    std::array<int64_t, 3> pieces = getPieces(strategy, mesh);
    bool hasGroups = mesh.replicate > 1;
    // A mesh whose axis `shard` is not used is the mesh of other axes.
    bool isUnused = pieces[2] == 1 && mesh.shard > mesh.context;
    // A given --reshard-after-forward needs a strategy that gathers parameters again.
    bool contradicts = options.isGiven("reshard-after-forward") && again && !strategy.reshard;
    if (!word.isAlias && !isUnused && !contradicts && (hasGroups || !strategy.needsGroups) &&
        seen.insert({pieces, strategy.reshard && pieces[0] > 1}).second)
      names.push_back(word.word.str());
  }
  return names;
}

static Values listReshards(const Space &space, const StepOptions &options) {
  const Strategy &strategy = getStrategy(options.shard.strategy);
  MeshRanks mesh = getMeshRanks(options);
  std::array<int64_t, 3> pieces = getPieces(strategy, mesh);
  Values values{"true"};
  if (pieces[0] == 1 || !strategy.reshard)
    return values;
  for (const ClusterLink &link : space.cluster.links)
    if (int64_t ranks = static_cast<int64_t>(link.ranks) / mesh.tensor;
        ranks > 1 && ranks < pieces[0] && pieces[0] % ranks == 0)
      values.push_back(std::to_string(ranks));
  bool isOther = llvm::any_of(getWords<ShardingStrategy>(), [&](const OptionWord &word) {
    const Strategy &other = getStrategy(static_cast<ShardingStrategy>(word.index));
    return !other.reshard && getPieces(other, mesh) == pieces;
  });
  if (!isOther)
    values.push_back("false");
  return values;
}

static Values listCheckpointing(const Space &, const StepOptions &options) {
  if (options.plan.memoryLimit == 0)
    return {"none"};
  return {"none", "selective=attention+contract+row", "selective=attention+contract",
          "selective=attention+contract/2", "full"};
}

static Values listOffload(const Space &space, const StepOptions &options) {
  if (options.plan.memoryLimit == 0 || space.cluster.hostBytesPerSecond == 0)
    return {"none"};
  return {"none", "optimizer", "activations", "optimizer+activations",
          "parameters+gradients+optimizer+activations"};
}

static Values listPrefetch(const Space &, const StepOptions &) { return {"auto", "1"}; }

/// Number of dimensions at the beginning of the table that stages before Plan read.
static constexpr unsigned groupDimensions = 6;
static constexpr Dimension dimensions[] = {{"mesh", listMeshes},
                                           {"context-attention", listContextAttention, contextAxis},
                                           {"sequence-parallel", listRows, tensorAxis},
                                           {"grad-accum", listAccumulation},
                                           {"sharding-strategy", listStrategies},
                                           {"reshard-after-forward", listReshards},
                                           {"activation-checkpointing", listCheckpointing},
                                           {"offload", listOffload},
                                           {"prefetch", listPrefetch}};

/// Appends all candidates that result from `candidate` by setting the dimensions from `number` on.
static void addCandidates(const Space &space, unsigned number, const Candidate &candidate,
                          unsigned &groups, std::vector<Candidate> &all) {
  if (number == std::size(dimensions)) {
    all.push_back(candidate);
    all.back().group = groups - 1;
    return;
  }
  groups += number == groupDimensions;
  const Dimension &dimension = dimensions[number];
  const OptionRow &row = *findOption(dimension.option);
  bool isGiven = candidate.options.isGiven(dimension.option);
  if (isGiven && !dimension.axis.empty() && !hasAxis(candidate.options, dimension.axis)) {
    // The best plan's file should not have an option that its mesh refuses.
    Candidate without = candidate;
    (void)row.read(without.options, dimension.list(space, without.options).front());
    without.options.origins.erase(dimension.option);
    return addCandidates(space, number + 1, without, groups, all);
  }
  if (isGiven)
    return addCandidates(space, number + 1, candidate, groups, all);
  for (const std::string &value : dimension.list(space, candidate.options)) {
    Candidate longer = candidate;
    // An option that keeps its value is not set, so that the command line of a candidate can be
    // short.
    (void)row.read(longer.options, value);
    if (row.name == "mesh" || row.printOne(longer.options) != row.printOne(candidate.options)) {
      (void)setOption(longer.options, row.name, value, OptionOrigin::CommandLine);
      longer.spelled.push_back("--" + row.name.str() +
                               (row.kind == OptionKind::flag ? "" : "=" + value));
      if (number >= groupDimensions)
        longer.ofPlan += " " + longer.spelled.back();
    }
    addCandidates(space, number + 1, longer, groups, all);
  }
}

/// Returns whether parameters may be narrower than f32, so that --param-storage has an effect.
static bool mayBeNarrow(ModuleOp imported, const StepOptions &options) {
  auto isNarrow = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && isa<FloatType>(tensor.getElementType()) &&
           tensor.getElementTypeBitWidth() < 32;
  };
  return options.shard.paramDtype != ParamDtype::OfModel ||
         llvm::any_of(imported.getOps<func::FuncOp>(), [&](func::FuncOp function) {
           return llvm::any_of(function.getArgumentTypes(), isNarrow);
         });
}

std::vector<Candidate> fsdp::listCandidates(ModuleOp imported, const StepOptions &options,
                                            const Cluster &cluster) {
  int64_t ranks = options.driver.search;
  Space space{ranks, ranks * options.shard.gradAccum, cluster};
  Candidate first{options, {}, ""};
  first.options.driver = DriverOptions();
  auto set = [&](StringRef option, StringRef value, StringRef spelled) {
    (void)setOption(first.options, option, value, OptionOrigin::CommandLine);
    first.spelled.push_back(spelled.str());
  };
  set("overlap", "true", "--overlap");
  // Within a memory limit, candidates have the storage that needs less memory.
  if (options.plan.memoryLimit > 0 && !options.codegen.isForCpu() &&
      options.shard.paramStorage == ParamStorage::Auto && mayBeNarrow(imported, options))
    set("param-storage", "master", "--param-storage=master");
  first.options.origins.erase("grad-accum");
  std::vector<Candidate> all;
  unsigned groups = 0;
  addCandidates(space, 0, first, groups, all);
  for (Candidate &candidate : all) { // the mesh is the first option that a user looks for
    auto mesh = candidate.spelled.begin() + static_cast<std::ptrdiff_t>(first.spelled.size());
    std::rotate(candidate.spelled.begin(), mesh, mesh + 1);
  }
  return all;
}
