//===- MemorySearch.h - What waits in the arena under a limit ---*- C++ -*-===//
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

/// The blocks of a function that may hold a forward and a backward: its body and those of its
/// loops.
SmallVector<Block *> getStepBlocks(func::FuncOp function);

/// What of the forward does not wait for the backward in the arena.
struct MemoryChoice {
  /// Calls of the block's RecomputeGraph whose results are computed again, and whose results wait
  /// on the host.
  llvm::BitVector recomputed, offloaded;
  /// Whatever else waits for long may wait on the host, too.
  bool offloadsRest = false;
  /// Of findRepeatedGathers, those that wait in the arena.
  llvm::BitVector kept;
};

/// Makes the choice in a block. Returns the bytes that wait for the backward without it, less those
/// that do with it.
int64_t applyChoice(func::FuncOp function, unsigned block, const MemoryChoice &choice);

struct FoundChoice : MemoryChoice {
  /// Which of getStepBlocks.
  unsigned block = 0;
  /// Bytes of the arena without the workspace of kernels; estimated seconds of the step.
  int64_t bytes = 0;
  double seconds = 0;
  /// Calls and gathers there are to choose from; plans that were packed on the way.
  unsigned numCalls = 0, numGathers = 0, plans = 0;
};

struct MemorySearchOptions {
  /// Of the arena, without workspace.
  int64_t limit = 0;
  /// Whether gathers may be kept, and results of calls may wait on the host: such of `minBytes` and
  /// more.
  bool keepGathers = false, offload = false;
  int64_t minBytes = 0;
  /// Adds what stands between buffers and offsets. Where nothing fits otherwise and `schedules`,
  /// the schedule keeps to the limit at all costs.
  bool schedules = false;
  std::function<void(OpPassManager &, bool atAllCosts)> addSchedule;
};

/// The choice that takes least time among those tried whose arena takes at most the limit; where
/// none does, the smallest arena found. Failure: a plan could not be made.
FailureOr<FoundChoice> searchMemory(func::FuncOp step, const Cluster &cluster,
                                    const MemorySearchOptions &options);

} // namespace mlir::fsdp

#endif // FSDP_PLAN_MEMORYSEARCH_H
