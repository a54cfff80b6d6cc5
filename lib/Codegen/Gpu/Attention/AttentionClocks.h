//===- AttentionClocks.h - Clocks of the attention kernels ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Models the duration of the steps of the attention kernels. The model chooses the order of blocks,
// and reports contain its results.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONCLOCKS_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONCLOCKS_H

#include "Sm80Backward.h"
#include "Sm90Attention.h"
#include "fsdp/Analysis/Gpu/AttentionOrder.h"
#include "fsdp/Analysis/Gpu/GpuClocks.h"

namespace mlir::fsdp::attention {

/// The clocks of one step. In a step, a block of threads that owns queries processes one block of
/// keys, or a block of threads that owns keys processes one block of queries.
struct StepClocks {
  GpuClocks units;
  double clocks = 0; ///< duration of the step, including the work that does not overlap with other
                     ///< work
};

/// The work per element of the scores: the number of instructions (`issue`), and the number of
/// results of special functions such as ex2 (`special`).
struct ElementWork {
  double issue = 0, special = 0;
  ElementWork &operator+=(const ElementWork &other) {
    issue += other.issue;
    special += other.special;
    return *this;
  }
};
/// The work of the score functions of an attention op or of its gradient. `score` is the work for
/// every element. `mask` is the additional work for every element of a block that may contain
/// masked elements.
struct FunctionWork {
  ElementWork score, mask;
};
FunctionWork workOfFunctions(AttentionOp op);
FunctionWork workOfFunctions(AttentionGradOp op);

/// Clocks of the forward kernel with wgmma.
struct Sm90ForwardClocks {
  StepClocks freeStep, maskedStep; ///< clocks of the step for one block of keys
  double tileClocks = 0;           ///< clocks for a block of queries in addition to its steps
};
Sm90ForwardClocks clocksOf(const Sm90Config &config, const Shape &shape, const FunctionWork &work);

/// Clocks of the kernel with wgmma that computes dK and dV and perhaps also sums dQ.
struct Sm90KeyClocks {
  StepClocks freeStep, maskedStep; ///< clocks of the step for one block of queries
  double blockClocks = 0;          ///< clocks for a block of keys in addition to its steps
  double partClocks = 0;           ///< clocks to add dK and dV to the sums of other parts
  double addClocks = 0;            ///< clocks to add dQ of one block of queries to the sums
};
Sm90KeyClocks clocksOf(const Sm90Keys &config, const Shape &shape, const FunctionWork &work);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONCLOCKS_H
