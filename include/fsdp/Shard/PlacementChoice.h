//===- PlacementChoice.h - Where the options put tensors -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_SHARD_PLACEMENTCHOICE_H
#define FSDP_SHARD_PLACEMENTCHOICE_H

#include "fsdp/IR/FSDP.h"
#include "fsdp/Options/OptionTypes.h"
#include "fsdp/Shard/MeshSpec.h"

namespace mlir::fsdp {

/// One row of the table of sharding strategies: the axes over which parameters,
/// accumulated gradients and optimizer state are in pieces. On the others they
/// are replicated.
struct Strategy {
  ShardingStrategy name;
  int parameters, gradients, state; ///< how many of shard, replicate
  bool reshard;                     ///< gathered parameters are dropped after the forward
  bool needsGroups;                 ///< makes sense with replicas only

  PlacementAttr getPlacement(MLIRContext *context) const;
};

/// Returns the row of a strategy.
const Strategy &getStrategy(ShardingStrategy name);

/// Options of a pass, as text.
struct PlacementTexts {
  StringRef mesh, strategy, reshard, root, storage, ignore;
};

/// What they say.
struct PlacementChoice {
  MeshSpec mesh;
  const Strategy *strategy;
  bool gathersAgain = true; ///< in the backward
  int64_t within = 0;       ///< among how many neighbours; 0: all
  ReshardRoot root = ReshardRoot::Backward;
  ParamStorage storage = ParamStorage::Master;

  int64_t getShards() const { return llvm::product_of(mesh.shard); }
  int64_t getReplicas() const { return llvm::product_of(mesh.replicate); }
};

/// Reads the options, and warns of those that change nothing on this mesh. Errors are at `loc`.
FailureOr<PlacementChoice> readPlacement(const PlacementTexts &texts, Location loc);

} // namespace mlir::fsdp

#endif // FSDP_SHARD_PLACEMENTCHOICE_H
