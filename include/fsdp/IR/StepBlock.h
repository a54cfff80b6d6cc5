//===- StepBlock.h - Layout of the step block and rank block ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines the step block and the rank block (docs/explanation/pipeline.md, section 4).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_STEPBLOCK_H
#define FSDP_IR_STEPBLOCK_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace mlir {
namespace fsdp {

/// Elements of the step block, which are f32.
enum class StepSlot : int64_t {
  LearningRate = 0, ///< learning rate, which the host writes before a step
  Step = 1,         ///< number of applied steps
  LossScale = 2,    ///< loss scale of the next step; 0 before the first step and without scaling
  Growth = 3,       ///< steps since the scale changed; -1 for a fixed scale
  Clip = 4,         ///< factor of the gradients: clip factor times 1 / loss scale
  Tokens = 5,       ///< tokens of the applied steps
  Finite = 6,       ///< 1 if loss and gradients were finite; else 0, and nothing was updated
  Loss = 7,
  GradNorm = 8,      ///< norm before clipping
  Skipped = 9,       ///< number of steps that were not finite and therefore not applied
  Lookups = 10,      ///< number of ranks with a lookup out of range; if not 0, nothing was updated
  LookupNumber = 11, ///< 1 + index of this rank's first lookup op with an id out of range, or 0
  LookupValue = 12,  ///< bits 42-63 of that lookup's id; slots 13 and 14 hold bits 21-41 and 0-20
};
constexpr int64_t kStepBlockSize = 16;

/// Elements of the rank block, which are i64. Random numbers depend on Seed and StepNumber, which
/// are equal on all ranks and in the reference. StepNumber counts earlier steps, applied or
/// skipped.
enum class RankSlot : int64_t {
  Rank = 0,
  ShardIndex = 1,
  ReplicateIndex = 2,
  Seed = 4,
  StepNumber = 5
};
constexpr int64_t kRankBlockSize = 8;

/// Argument attribute between Differentiate and Update. The argument is the initial cotangent of
/// the backward. Update replaces it by values of the step block.
constexpr llvm::StringLiteral lossScaleAttr = "fsdp.loss_scale";
/// Argument attribute between Differentiate and Update. The argument is the factor of the loss,
/// count · n / (sum of counts). `count` is the number of targets in one micro-batch that are not
/// ignored. n is the number of micro-batches of all ranks; the sum adds their counts.
constexpr llvm::StringLiteral lossWeightAttr = "fsdp.loss_weight";
/// Result attribute between Import and Update. The result, a tensor<i64>, is 0, or an id of the
/// lookup that is out of range. The attribute is a dictionary of `location` (text), `extent` (valid
/// indices are in [0, extent)) and `what` (name of the indexed objects, such as "rows of the
/// table").
constexpr llvm::StringLiteral lookupAttr = "fsdp.lookup";
/// Module attribute after Update: the dictionaries of all lookups, in the order of LookupNumber.
constexpr llvm::StringLiteral lookupsAttr = "fsdp.lookups";
/// Module attribute after Update, present if the step changes the loss scale in the step block.
constexpr llvm::StringLiteral dynamicScaleAttr = "fsdp.dynamic_loss_scale";

} // namespace fsdp
} // namespace mlir

#endif // FSDP_IR_STEPBLOCK_H
