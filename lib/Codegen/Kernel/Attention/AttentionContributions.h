//===- AttentionContributions.h - What score_grad contributes ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONCONTRIBUTIONS_H
#define FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONCONTRIBUTIONS_H

#include "fsdp/Analysis/AttentionTiles.h"
#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp::attention {

/// Arguments of score_grad before b, h, q, k.
inline constexpr unsigned leadingOfGrad = 2;

/// A captured float tensor and its gradient.
struct CapturedFloat {
  RankedTensorType type;
  Value result;
};

/// One `fsdp.contribute` to a gradient that somebody uses.
struct Contributed {
  ContributeOp op;
  unsigned gradient; ///< its number among the captured floats
  Dependence where;  ///< on what its place depends
};

SmallVector<CapturedFloat> collectCapturedFloats(AttentionGradOp op);
SmallVector<Contributed> collectContributions(AttentionGradOp op);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONCONTRIBUTIONS_H
