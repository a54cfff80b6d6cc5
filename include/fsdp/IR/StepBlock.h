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
  /// Loss scale of the next step. It is 0 before the first step, or if the loss is not scaled.
  LossScale = 2,
  /// Number of steps since the last change of the loss scale, or -1 if the loss scale is fixed.
  Growth = 3,
  Clip = 4,   ///< factor by which gradients are multiplied: clip factor / loss scale
  Tokens = 5, ///< number of tokens of all applied steps
  /// 1 if the loss and the gradients were finite and no lookup had an id out of range, and else 0.
  /// If the value is 0, the step changed no state.
  Finite = 6,
  Loss = 7,
  GradNorm = 8, ///< norm of the gradients before clipping
  Skipped = 9,  ///< number of skipped steps, which are the steps in which Finite was 0
  /// Number of ranks on which a lookup had an id out of range. If it is not 0, the step changed no
  /// state.
  Lookups = 10,
  /// 1 + the index of the first lookup op with an id out of range on this rank. The value is 0 if
  /// no lookup op has such an id.
  LookupNumber = 11,
  /// Bits 42 to 63 of the id that is out of range. Element 13 contains bits 21 to 41 of this id,
  /// and element 14 contains bits 0 to 20.
  LookupValue = 12,
};
constexpr int64_t kStepBlockSize = 16;

/// Elements of the rank block, a tensor of i64. Random numbers depend on Seed and StepNumber, which
/// are equal on all ranks. StepNumber is the number of all earlier steps, whether they were applied
/// or skipped.
enum class RankSlot : int64_t {
  Rank = 0,
  ShardIndex = 1,
  ReplicateIndex = 2,
  Seed = 4,
  StepNumber = 5
};
constexpr int64_t kRankBlockSize = 8;

/// Attribute of the argument that is the initial cotangent of the backward. Differentiate adds the
/// argument. Update replaces the argument by a value that is computed from the step block.
constexpr llvm::StringLiteral lossScaleAttr = "fsdp.loss_scale";
/// Attribute of the argument by which Differentiate multiplies the loss. Update replaces the
/// argument by the value `count` · `n` / `total`. `count` is the number of targets of one
/// micro-batch that are not ignored. `n` is the number of micro-batches on all ranks. `total` is
/// the sum of `count` over these micro-batches.
constexpr llvm::StringLiteral lossWeightAttr = "fsdp.loss_weight";
/// Attribute of a result of a function. Import adds a result with this attribute for each lookup.
/// Update removes these results. The result is a tensor<i64>, which contains an id that is out of
/// range, or 0 if no id is out of range. The attribute is a dictionary with three entries. The
/// entry `location` is a text. The entry `extent` is the number of valid ids, which are in [0,
/// extent). The entry `what` names the indexed objects, such as "rows of the table".
constexpr llvm::StringLiteral lookupAttr = "fsdp.lookup";
/// Module attribute that exists after Update. The attribute is an array of the `fsdp.lookup`
/// dictionaries of all lookups. The element LookupNumber of the step block, minus 1, is an index
/// into this array.
constexpr llvm::StringLiteral lookupsAttr = "fsdp.lookups";
/// Module attribute. The module has this attribute after Update if steps change the loss scale.
constexpr llvm::StringLiteral dynamicScaleAttr = "fsdp.dynamic_loss_scale";

} // namespace fsdp
} // namespace mlir

#endif // FSDP_IR_STEPBLOCK_H
