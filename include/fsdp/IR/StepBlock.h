//===- StepBlock.h - What changes from step to step -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The layout of the step block and the rank block: docs/explanation/pipeline.md, section 4.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_STEPBLOCK_H
#define FSDP_IR_STEPBLOCK_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace mlir {
namespace fsdp {

/// Elements of the step block, f32.
enum class StepSlot : int64_t {
  LearningRate = 0, ///< written by the host before a step
  Step = 1,         ///< steps that were applied
  LossScale = 2,    ///< of the next step; 0 before the first, and where nothing is scaled
  Growth = 3,       ///< steps since the scale changed; -1: it never does
  Clip = 4,         ///< factor that the gradients were multiplied by: clipping, and 1 / loss scale
  Tokens = 5,       ///< tokens of the steps that were applied
  Finite = 6,       ///< 1 when loss and gradients were finite, else 0: nothing was updated
  Loss = 7,
  GradNorm = 8, ///< before clipping
  Skipped = 9,  ///< steps that were not finite and changed nothing
  Lookups = 10, ///< ranks on which a checked lookup found an index out of range; if not 0, nothing
                ///< was updated
  LookupNumber = 11, ///< 1 + number of the first such lookup of this rank; 0: none
  LookupValue = 12,  ///< its index: bits 42 to 63; the next slots have bits 21 to 41 and 0 to 20
};
constexpr int64_t kStepBlockSize = 16;

/// Elements of the rank block, i64. The last two are what random numbers are made from, the same on
/// all ranks and in the reference: `step` counts the steps before this one, whether they were
/// applied or skipped.
enum class RankSlot : int64_t {
  Rank = 0,
  ShardIndex = 1,
  ReplicateIndex = 2,
  Seed = 4,
  StepNumber = 5
};
constexpr int64_t kRankBlockSize = 8;

/// On the argument that a backward starts from, between Differentiate and Update: a
/// scalar that the step block provides.
constexpr llvm::StringLiteral lossScaleAttr = "fsdp.loss_scale";
/// On the argument that a loss is multiplied by, between Differentiate and Update: a scalar,
/// count · n / (sum of counts) of targets that count in it, over n micro-batches of all ranks.
constexpr llvm::StringLiteral lossWeightAttr = "fsdp.loss_weight";
/// On a result between Import and Update: a tensor<i64>, 0 or an index of a lookup that is out of
/// range. The value is a dictionary: `location` (text), `extent` (the index is to be in [0,
/// extent)) and `what` has so many elements.
constexpr llvm::StringLiteral lookupAttr = "fsdp.lookup";
/// On the module after Update: these dictionaries, in the order of LookupNumber.
constexpr llvm::StringLiteral lookupsAttr = "fsdp.lookups";

} // namespace fsdp
} // namespace mlir

#endif // FSDP_IR_STEPBLOCK_H
