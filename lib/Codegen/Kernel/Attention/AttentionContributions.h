//===- AttentionContributions.h - Contributions of score_grad to gradients --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONCONTRIBUTIONS_H
#define FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONCONTRIBUTIONS_H

#include "fsdp/Analysis/AttentionTiles.h"
#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp::attention {

/// Number of arguments of score_grad before b, h, q, k.
inline constexpr unsigned leadingOfGrad = 2;

/// The type of a captured float tensor, and the result that is the tensor's gradient.
struct CapturedFloat {
  RankedTensorType type;
  Value result;
};

/// An `fsdp.contribute` to a gradient that has uses.
struct Contributed {
  ContributeOp op;
  unsigned gradient; ///< index into the list of collectCapturedFloats()
  Dependence where;  ///< arguments that the indices of `op` depend on
};

/// Returns the captured float tensors in the order of the captures.
SmallVector<CapturedFloat> collectCapturedFloats(AttentionGradOp op);
/// Returns the contributions of score_grad whose gradients have uses, in the order of the ops.
SmallVector<Contributed> collectContributions(AttentionGradOp op);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONCONTRIBUTIONS_H
