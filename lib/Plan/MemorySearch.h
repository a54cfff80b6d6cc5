//===- MemorySearch.h - Search for a plan within a limit --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_MEMORYSEARCH_H
#define FSDP_PLAN_MEMORYSEARCH_H

#include "fsdp/Analysis/Cluster.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::fsdp {

/// Returns the blocks that may hold a forward and a backward: a function's body and loop bodies.
SmallVector<Block *> getStepBlocks(func::FuncOp function);

/// Determines which results of the forward are not kept in the arena for the backward.
struct MemoryChoice {
  /// One bit for each call of the block's RecomputeGraph. In `recomputed`, the bit is set if the
  /// results of the call are computed again; in `offloaded`, if they may wait on the host.
  llvm::BitVector recomputed, offloaded;
  /// True if all other long-lived activations may also wait on the host.
  bool offloadsRest = false;
  /// One bit for each gather of findRepeatedGathers(). The bit is set if the gathered parameters
  /// are kept until the backward.
  llvm::BitVector kept;
};

/// Applies the choice to a block. Returns by how many bytes the choice reduces the total size of
/// the results that wait in the arena for the backward.
int64_t applyChoice(func::FuncOp function, unsigned block, const MemoryChoice &choice);

struct FoundChoice : MemoryChoice {
  /// Index of the block in the result of getStepBlocks().
  unsigned block = 0;
  /// Size of the arena in bytes without the workspace of kernels, and estimated seconds of a step.
  int64_t bytes = 0;
  double seconds = 0;
  /// The search chooses among `numCalls` calls and `numGathers` gathers. It has packed `plans`
  /// plans so far.
  unsigned numCalls = 0, numGathers = 0, plans = 0;
};

struct MemorySearchOptions {
  /// Largest size of the arena in bytes, without workspace.
  int64_t limit = 0;
  /// If `keepGathers` is true, gathered parameters may be kept for the backward. If `offload` is
  /// true, results of at least `minBytes` bytes may wait on the host.
  bool keepGathers = false, offload = false;
  int64_t minBytes = 0;
  /// `addSchedule` adds the passes that run after buffers are assigned and before offsets are
  /// chosen. If `schedules` is true and no plan fits, the search is repeated with `atAllCosts` =
  /// true. Schedules then stay within the limit even if they hide fewer transfers.
  bool schedules = false;
  std::function<void(OpPassManager &, bool atAllCosts)> addSchedule;
};

/// Returns the fastest of the choices that were tried and whose arena is within the limit. If no
/// arena fits, returns the choice with the smallest arena. Fails if a plan could not be made.
FailureOr<FoundChoice> searchMemory(func::FuncOp step, const Cluster &cluster,
                                    const MemorySearchOptions &options);

} // namespace mlir::fsdp

#endif // FSDP_PLAN_MEMORYSEARCH_H
