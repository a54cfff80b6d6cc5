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

/// Elements of the step block, a tensor of f32 (docs/explanation/pipeline.md, section 4).
enum class StepSlot : int64_t {
  LearningRate = 0, ///< learning rate, which the host writes before a step
  Step = 1,         ///< number of applied steps
  LossScale = 2,    ///< loss scale of the next step; 0 before the first step and without scaling
  Growth = 3,       ///< number of steps since the loss scale changed; -1 if the loss scale is fixed
  Clip = 4,         ///< factor by which gradients are multiplied: clip factor / loss scale
  Tokens = 5,       ///< number of tokens of all applied steps
  Finite = 6,       ///< 1 if loss and gradients were finite; else 0, and the step changed no state
  Loss = 7,
  GradNorm = 8,      ///< norm of the gradients before clipping
  Skipped = 9,       ///< number of steps not applied because a value was not finite
  Lookups = 10,      ///< number of ranks with an id out of range; if not 0, no state changed
  LookupNumber = 11, ///< 1 + index of this rank's first lookup op with an id out of range, or 0
  LookupValue = 12,  ///< bits 42-63 of that id; elements 13 and 14 contain bits 21-41 and 0-20
};
constexpr int64_t kStepBlockSize = 16;

/// Elements of the rank block, a tensor of i64. Random numbers depend on Seed and StepNumber, which
/// are equal on all ranks. StepNumber is the number of earlier steps, applied or skipped.
enum class RankSlot : int64_t {
  Rank = 0,
  ShardIndex = 1,
  ReplicateIndex = 2,
  Seed = 4,
  StepNumber = 5
};
constexpr int64_t kRankBlockSize = 8;

/// Attribute of the argument that is the initial cotangent of the backward. Differentiate adds the
/// argument. Update replaces it by a value computed from the step block.
constexpr llvm::StringLiteral lossScaleAttr = "fsdp.loss_scale";
/// Attribute of the argument by which Differentiate multiplies the loss, and which Update replaces.
/// Its value is count · n / (sum of the counts of n micro-batches). `count` is the number of
/// targets of one micro-batch that are not ignored; n is the number of micro-batches on all ranks.
constexpr llvm::StringLiteral lossWeightAttr = "fsdp.loss_weight";
/// Attribute of a result that Import adds for a lookup and Update removes. The result, a
/// tensor<i64>, is 0, or an id that is out of range. The attribute is a dictionary of `location`
/// (text), `extent` (valid ids are in [0, extent)) and `what` (the indexed objects, such as "rows
/// of the table").
constexpr llvm::StringLiteral lookupAttr = "fsdp.lookup";
/// Module attribute after Update: an array of the `fsdp.lookup` dictionaries of all lookups.
/// LookupNumber - 1 is an index of this array.
constexpr llvm::StringLiteral lookupsAttr = "fsdp.lookups";
/// Module attribute after Update, present if steps change the loss scale.
constexpr llvm::StringLiteral dynamicScaleAttr = "fsdp.dynamic_loss_scale";

} // namespace fsdp
} // namespace mlir

#endif // FSDP_IR_STEPBLOCK_H
