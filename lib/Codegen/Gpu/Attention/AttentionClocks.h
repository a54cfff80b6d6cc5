//===- AttentionClocks.h - Clocks of the attention kernels ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Models the duration of the steps of the attention kernels. The model chooses the order of blocks,
// and costs of launches contain its results.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONCLOCKS_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONCLOCKS_H

#include "Codegen/Gpu/Ptx/OpWork.h"
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

/// The work of the score functions of an attention op or of its gradient. `score` is the work for
/// every element. `mask` is the additional work for every element of a block that may contain
/// masked elements.
struct FunctionWork {
  OpWork score, mask;
  bool isPlain = true; ///< there is neither score_mod nor weight_mod
};
FunctionWork workOfFunctions(AttentionOp op);
/// `sumsAll` is true if the pass sums all contributions to captured tensors, not only those that
/// belong to the tensors it owns.
FunctionWork workOfFunctions(AttentionGradOp op, AttentionPass pass, bool sumsAll = false);

/// A kernel whose blocks of threads own a block of one side and visit blocks of the other.
struct KernelClocks {
  StepClocks freeStep, maskedStep; ///< a visited block: without and with masked elements
  double blockClocks = 0;          ///< of an owned block, beside its visits
  double launchClocks = 0;         ///< before the first visit and after the last one

  /// Returns the duration of an owned block, and adds its work to `all`.
  double run(const BlockVisits &visits, GpuClocks &all) const;
};

/// Returns the clocks of a warpgroup's product in f32, whose left factor is in shared memory or in
/// registers.
GpuClocks productOfWide(double cols, double k, bool leftIsShared, bool splits);
/// Instructions of a lane that split a value of f32 (SplitProducts.cpp).
inline constexpr double clocksOfSplit = 7;
/// Adds `bytes` that are copied from global to shared memory.
void copyToShared(GpuClocks &clocks, double bytes);

/// The forward pass with wgmma: blocks of queries visit blocks of keys.
KernelClocks clocksOf(const Sm90Config &config, const Shape &shape, const FunctionWork &work);

/// Clocks of the kernel with wgmma that computes dK and dV and perhaps also sums dQ.
struct Sm90KeyClocks : KernelClocks {
  double partClocks = 0;                  ///< clocks to add dK and dV to other parts' sums
  double addClocks = 0;                   ///< clocks to add dQ of one block of queries to the sums
  double loadClocks = 0, roundClocks = 0; ///< clocks to load these sums, and further ones to round
};
Sm90KeyClocks clocksOf(const Sm90Keys &config, const Shape &shape, const FunctionWork &work);

/// Bytes of tensors in memory.
struct TensorBytes {
  TensorBytes(const Shape &shape, Type element);
  double q, k, v, o, norms; ///< norms: an f32 per query of all heads
};

/// Work of a launch with a block of threads for each owned block.
struct Sm80Work {
  std::vector<double> clocks; ///< of an owned block, by its number in the head
  GpuClocks units;            ///< of all blocks
  double bytes = 0;           ///< of memory
  int64_t heads = 1, group = 1, mostTogether = 1;
  int64_t multiprocessors = 1, slots = 1;
};
Sm80Work workOf(AttentionPass pass, AttentionTiles tiles, const FunctionWork &functions,
                const Sm80Config &config, const Shape &shape, Type element,
                const GpuTarget &target);

/// Returns the work of a kernel whose blocks of threads own `blockRows` rows and visit blocks of
/// `blockCols` columns, `blocksPerSm` of which share a multiprocessor.
Sm80Work workOf(AttentionPass pass, AttentionTiles tiles, const KernelClocks &clocks,
                int64_t blockRows, int64_t blockCols, int64_t blocksPerSm, const Shape &shape,
                Type element, const GpuTarget &target);

/// Return the order that ends first, and the cost of the launch.
QueryOrder chooseQueryOrder(const Sm80Work &work);
KeyOrder chooseKeyOrder(const Sm80Work &work);
GpuCost costOf(const Sm80Work &work, const QueryOrder &order);
GpuCost costOf(const Sm80Work &work, const KeyOrder &order);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_ATTENTIONCLOCKS_H
