//===- AttentionClocks.h - Clocks of the attention kernels ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Models the steps of the attention kernels, for the choice of their order and for reports.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONCLOCKS_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONCLOCKS_H

#include "Sm80Backward.h"
#include "Sm90Attention.h"
#include "fsdp/Analysis/Gpu/AttentionOrder.h"
#include "fsdp/Analysis/Gpu/GpuClocks.h"

namespace mlir::fsdp::attention {

/// A step of a block of threads: a block of the other side.
struct StepClocks {
  GpuClocks units;
  double clocks = 0; ///< duration of the step, with what does not overlap
};

/// Instructions, and results of special functions, for an element of the score matrix.
struct ElementWork {
  double issue = 0, special = 0;
  ElementWork &operator+=(const ElementWork &other) {
    issue += other.issue;
    special += other.special;
    return *this;
  }
};
/// Returns the work of the functions of an attention op or its gradient. `mask` is for elements
/// that may be masked; `score` for all.
struct FunctionWork {
  ElementWork score, mask;
};
FunctionWork workOfFunctions(AttentionOp op);
FunctionWork workOfFunctions(AttentionGradOp op);

/// A launch of the forward pass with wgmma.
struct Sm90ForwardClocks {
  StepClocks freeStep, maskedStep; ///< a block of keys
  double tileClocks = 0;           ///< of a block of queries, beside its blocks of keys
};
Sm90ForwardClocks clocksOf(const Sm90Config &config, const Shape &shape, const FunctionWork &work);

/// A launch of dK, dV and perhaps dQ with wgmma.
struct Sm90KeyClocks {
  StepClocks freeStep, maskedStep; ///< a block of queries
  double blockClocks = 0;          ///< of a block of keys, beside its blocks of queries
  double partClocks = 0;           ///< to add dK and dV to those of other parts
  double addClocks = 0;            ///< to add a part of dQ
};
Sm90KeyClocks clocksOf(const Sm90Keys &config, const Shape &shape, const FunctionWork &work);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONCLOCKS_H
