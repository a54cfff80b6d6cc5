//===- RecomputeSearch.h - What to compute again under a limit --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_RECOMPUTESEARCH_H
#define FSDP_PLAN_RECOMPUTESEARCH_H

#include "RecomputeGraph.h"
#include "fsdp/Analysis/Cost.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::fsdp {

/// The blocks of a function that may hold a forward and a backward: its body and those of its loops.
SmallVector<Block *> getStepBlocks(func::FuncOp function);

struct RecomputeChoice {
  /// Which of getStepBlocks, and the calls of its RecomputeGraph.
  unsigned block = 0;
  llvm::BitVector calls;
  /// Bytes of the arena without the workspace of kernels; estimated seconds of the calls in a step.
  int64_t bytes = 0;
  double seconds = 0;
  /// Plans that were packed on the way.
  unsigned plans = 0;
};

/// The calls whose repetition costs least among those tried whose arena takes at most `limit` bytes; where none does, the
/// smallest arena found. `addSchedule` adds what stands between buffers and offsets. Failure: a plan could not be made.
FailureOr<RecomputeChoice> searchRecompute(func::FuncOp step, CostModel &costs, int64_t limit,
                                           llvm::function_ref<void(OpPassManager &)> addSchedule);

} // namespace mlir::fsdp

#endif // FSDP_PLAN_RECOMPUTESEARCH_H
