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

/// Number of arguments of the region score_grad that precede the arguments b, h, q and k.
inline constexpr unsigned leadingOfGrad = 2;

/// The type of a captured float tensor, and the result of the op that is the gradient of this
/// tensor.
struct CapturedFloat {
  RankedTensorType type;
  Value result;
};

/// An `fsdp.contribute` op of score_grad, which adds to a gradient that has uses.
struct Contributed {
  ContributeOp op;
  unsigned gradient; ///< index of the gradient in the list that collectCapturedFloats() returns
  Dependence where;  ///< whether the indices of `op` depend on q, on k, on both or on neither
};

/// Returns the captured float tensors in the order of the captures.
SmallVector<CapturedFloat> collectCapturedFloats(AttentionGradOp op);
/// Returns the contributions of score_grad to those gradients that have uses, in the order in which
/// the `fsdp.contribute` ops occur.
SmallVector<Contributed> collectContributions(AttentionGradOp op);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONCONTRIBUTIONS_H
