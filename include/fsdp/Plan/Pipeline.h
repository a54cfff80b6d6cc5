//===- Pipeline.h - The order of the Plan stage -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_PIPELINE_H
#define FSDP_PLAN_PIPELINE_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace mlir {
class OpPassManager;
namespace fsdp {

/// What lies in the host's memory and not in the arena.
struct OffloadKinds {
  bool parameters = false, gradients = false, optimizer = false, activations = false;
  /// The optimizer's state is in a file, and comes to the host for the update.
  bool optimizerFile = false;
  bool any() const { return parameters || gradients || optimizer || activations; }
  /// "none", or words with '+' between; nothing when `text` is neither, or has a word twice.
  static std::optional<OffloadKinds> parse(llvm::StringRef text);
};

struct PlanOptions {
  /// What of the forward is computed again in the backward: none, full, selective=KIND+KIND/N (what
  /// is kept: of KIND/N the first of each N in a unit), or auto: what fits into memoryLimit at the
  /// least time.
  std::string checkpointing = "none";
  /// auto: parameters may stay gathered from the forward on, where the forward's and the backward's
  /// gathers are the same.
  bool keepGathers = true;
  /// Kept in the host's memory: words of OffloadKinds; activations of offloadMinBytes and more.
  std::string offload = "none";
  int64_t offloadMinBytes = 1 << 20;
  /// Updates of state that is kept there run there; else on the device, as GPU kernels do.
  bool hostComputes = true;
  /// Collectives run beside compute: gathers are started ahead, reductions waited for later.
  bool overlap = false;
  /// Gathers started before an earlier one is waited for, of forward and backward; -1: as many as
  /// hide them.
  int64_t forwardPrefetch = -1, backwardPrefetch = -1;
  /// The same of copies between the arenas of the device and the host.
  int64_t copyPrefetch = -1;
  /// Bytes up to which collectives of one kind start as one launch; 0: each alone.
  int64_t bucketBytes = 0;
  /// Bytes of the arena that nothing may pass for it; 0: no limit.
  int64_t memoryLimit = 0;
  /// File or name of a cluster that times are estimated for; empty: CPU ranks.
  std::string cluster;
};

/// Dispatches to kernels and programs over packed arenas; ends in fsdp-verify-planned.
void buildPlanPipeline(OpPassManager &pm, const PlanOptions &options);

/// Makes it known to fsdp-opt as --fsdp-plan.
void registerPlanPipeline();

} // namespace fsdp
} // namespace mlir

#endif // FSDP_PLAN_PIPELINE_H
