//===- PlacementChoice.h - Sharding strategy and mesh options ---*- C++ -*-===//
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

/// A sharding strategy. The strategy assigns one number to the parameters, one to the accumulated
/// gradients, and one to the optimizer state. A tensor with the number N is sharded over the first
/// N axes of the list (shard, replicate). It is replicated over the remaining axes.
struct Strategy {
  ShardingStrategy name;
  int parameters, gradients, state; ///< number N (0, 1 or 2) of each kind of tensor
  bool reshard;                     ///< whether gathered parameters are freed after the forward
  bool needsGroups;                 ///< whether the strategy requires more than one replica

  PlacementAttr getPlacement(MLIRContext *context) const;
};

/// Returns the properties of a strategy.
const Strategy &getStrategy(ShardingStrategy name);

/// The texts of the options of fsdp-form-units that determine the placement of tensors.
struct PlacementTexts {
  StringRef mesh, strategy, reshard, root, storage, autoStorage, ignore;
};

/// The parsed values of PlacementTexts.
struct PlacementChoice {
  MeshSpec mesh;
  const Strategy *strategy;
  bool gathersAgain = true; ///< whether the backward gathers parameters again
  int64_t within = 0;       ///< number of ranks among which the backward gathers; 0 for all ranks
  ReshardRoot root = ReshardRoot::Backward;
  ParamStorage storage = ParamStorage::Master;
  bool choosesStorage = false; ///< whether param-storage=auto has chosen `storage`

  int64_t getShards() const { return mesh.getShards(); }
  int64_t getReplicas() const { return llvm::product_of(mesh.replicate); }
};

/// Parses the options. Emits a warning for each option that has no effect with this mesh. Emits
/// errors at `loc`.
FailureOr<PlacementChoice> readPlacement(const PlacementTexts &texts, Location loc);

} // namespace mlir::fsdp

#endif // FSDP_SHARD_PLACEMENTCHOICE_H
