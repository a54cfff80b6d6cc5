//===- LossScale.h - Scale of the loss in f16 -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_UPDATE_LOSSSCALE_H
#define FSDP_LIB_UPDATE_LOSSSCALE_H

#include "StepSlots.h"

namespace mlir::fsdp {

/// How the loss scale of a step is chosen.
struct LossScaleRule {
  double fixed = 0;           ///< the fixed scale, or 0 if the scale is dynamic
  double first = 0;           ///< scale of the first step if the scale is dynamic
  int64_t growthInterval = 0; ///< steps with finite gradients after which the scale doubles
};

/// The loss scale, and the number of steps since the scale last changed. Both values are scalars,
/// or null if the loss is not scaled.
struct LossScale {
  Value scale, growth;
};

/// Replaces the argument that is the initial cotangent of the backward by the scale in the step
/// block, or by a fixed scale. Returns null values if the program has no such argument.
LossScale bindLossScale(const Program &program, Value block, const LossScaleRule &rule);

/// Sets the loss scale of the next step. Halves a dynamic scale if `finite` is 0, and doubles it
/// after enough steps in which `finite` was 1. The scale and its inverse remain normal numbers.
/// Keeps the scale if `failedRanks`, the number of ranks with a lookup out of range, is not 0. This
/// value is null if no lookup is checked.
void updateLossScale(ImplicitLocOpBuilder &b, SlotSelector &slots, Value finite, Value failedRanks,
                     const LossScale &current, const LossScaleRule &rule);

} // namespace mlir::fsdp

#endif // FSDP_LIB_UPDATE_LOSSSCALE_H
