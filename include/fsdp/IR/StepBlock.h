//===- StepBlock.h - What changes from step to step -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The layout of the step block and the rank block: docs/Pipeline.md, section 4.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_STEPBLOCK_H
#define FSDP_IR_STEPBLOCK_H

#include <cstdint>

namespace mlir {
namespace fsdp {

/// Elements of the step block, f32.
enum class StepSlot : int64_t {
  LearningRate = 0, ///< written by the host before a step
  Step = 1,         ///< steps that were applied
  LossScale = 2,
  Growth = 3,
  Clip = 4,   ///< factor that the gradients were multiplied by
  Tokens = 5, ///< tokens of the steps that were applied
  Finite = 6, ///< 1 when loss and gradients were finite, else 0: nothing was updated
  Loss = 7,
  GradNorm = 8, ///< before clipping
};
constexpr int64_t kStepBlockSize = 16;

/// Elements of the rank block, i64.
enum class RankSlot : int64_t { Rank = 0, ShardIndex = 1, ReplicateIndex = 2 };
constexpr int64_t kRankBlockSize = 4;

} // namespace fsdp
} // namespace mlir

#endif // FSDP_IR_STEPBLOCK_H
