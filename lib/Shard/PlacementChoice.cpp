//===- PlacementChoice.cpp - Sharding strategy and mesh options -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Shard/PlacementChoice.h"
#include "fsdp/Options/PassConfiguration.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr StringLiteral axes[] = {"shard", "replicate"};
static constexpr Strategy strategies[] = {
    {ShardingStrategy::NoShard, 0, 0, 0, false, false},
    {ShardingStrategy::Zero1, 0, 0, 1, false, false},
    {ShardingStrategy::Zero2, 0, 1, 1, false, false},
    {ShardingStrategy::ShardGradOp, 1, 1, 1, false, false},
    {ShardingStrategy::FullShard, 1, 1, 1, true, false},
    {ShardingStrategy::HybridShard, 1, 1, 1, true, true},
    {ShardingStrategy::HybridShardZero2, 1, 1, 1, false, true},
    {ShardingStrategy::Hfsdp, 1, 1, 2, true, true},
};

const Strategy &fsdp::getStrategy(ShardingStrategy name) {
  return *llvm::find_if(strategies, [&](const Strategy &row) { return row.name == name; });
}

PlacementAttr Strategy::getPlacement(MLIRContext *context) const {
  Builder builder(context);
  auto first = [&](int count) {
    return builder.getStrArrayAttr(
        SmallVector<StringRef>(std::begin(axes), std::begin(axes) + count));
  };
  return PlacementAttr::get(context, first(parameters), first(gradients), first(state));
}

/// Parses the option reshard-after-forward. The option determines whether the backward gathers
/// parameters again, and among how many ranks.
static LogicalResult readReshard(const PlacementTexts &texts, PlacementChoice &choice,
                                 Location loc) {
  FailureOr<Reshard> reshard = readOption<Reshard>(loc, "reshard-after-forward", texts.reshard);
  if (failed(reshard))
    return failure();
  choice.gathersAgain = reshard->again;
  int64_t ranks = reshard->within, shards = choice.getShards();
  if (!ranks)
    return success();
  if (shards % ranks != 0) {
    InFlightDiagnostic diag = emitError(loc) << "reshard-after-forward: expected 'true', 'false' "
                                                "or a number of ranks that divides shard="
                                             << shards << " of the mesh (";
    for (int64_t divisor = 1; divisor <= shards; ++divisor)
      if (shards % divisor == 0)
        diag << (divisor > 1 ? ", " : "") << divisor;
    return diag << "), found '" << texts.reshard << "'";
  }
  choice.gathersAgain = ranks > 1 || shards == 1;
  choice.within = ranks > 1 && ranks < shards ? ranks : 0;
  if (!choice.within || choice.strategy->reshard)
    return success();
  return emitError(loc)
         << "reshard-after-forward: groups of " << choice.within
         << " ranks need a strategy that gathers parameters again in the backward: full_shard, "
            "hybrid_shard or hfsdp; "
            "found '"
         << texts.strategy << "'";
}

/// Warns of options that have no effect on this mesh. Does not warn on a mesh of one rank, on which
/// none of these options has an effect.
static void warnOfPlaces(const PlacementTexts &texts, const PlacementChoice &choice, Location loc) {
  const Strategy &row = *choice.strategy;
  if (choice.getShards() * choice.getReplicas() == 1)
    return;
  if (choice.getShards() == 1 && row.state > 0 && row.state < 2)
    emitWarning(loc) << "sharding-strategy '" << texts.strategy << "' shards nothing on mesh '"
                     << texts.mesh
                     << "': axis 'shard' has one rank, so the plan is that of no_shard";
  if (row.parameters == 0 && choice.root != ReshardRoot::Backward)
    emitWarning(loc) << "reshard-root '" << texts.root
                     << "' has no effect: with sharding-strategy '" << texts.strategy
                     << "' nothing is gathered for the root";
  if (row.state == 0 && !texts.ignore.empty())
    emitWarning(loc) << "ignore-params has no effect: with sharding-strategy '" << texts.strategy
                     << "' every rank keeps all parameters whole";
}

FailureOr<PlacementChoice> fsdp::readPlacement(const PlacementTexts &texts, Location loc) {
  auto mesh = parseMeshSpec(texts.mesh, [&] { return emitError(loc); });
  if (failed(mesh))
    return failure();
  auto strategy = readOption<ShardingStrategy>(loc, "sharding-strategy", texts.strategy);
  if (failed(strategy))
    return failure();
  PlacementChoice choice{*mesh, &getStrategy(*strategy)};
  if (choice.strategy->needsGroups && choice.getReplicas() == 1)
    return emitError(loc) << "sharding-strategy '" << texts.strategy
                          << "' needs at least 2 groups of ranks: expected a mesh with replicate "
                             "of at least 2, as in --mesh=replicate=2,shard=4, found '"
                          << texts.mesh << "'";
  auto storage = readOption<ParamStorage>(loc, "param-storage", texts.storage);
  if (failed(storage))
    return failure();
  choice.choosesStorage = *storage == ParamStorage::Auto;
  if (choice.choosesStorage)
    storage = readOption<ParamStorage>(loc, "auto-storage", texts.autoStorage);
  if (failed(storage))
    return failure();
  choice.storage = *storage;
  auto root = readOption<ReshardRoot>(loc, "reshard-root", texts.root);
  if (failed(root) || failed(readReshard(texts, choice, loc)))
    return failure();
  choice.root = *root;
  warnOfPlaces(texts, choice, loc);
  return choice;
}
