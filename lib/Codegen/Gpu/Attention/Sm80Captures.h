//===- Sm80Captures.h - Gradients of captured tensors, on a GPU -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80CAPTURES_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80CAPTURES_H

#include "Codegen/Kernel/Attention/AttentionContributions.h"
#include "Sm80Attention.h"

namespace mlir::fsdp::attention {

/// One `fsdp.contribute`, and where its sums wait: f32 in scratch.
struct Sm80Contribution : Contributed {
  int64_t offset = 0, count = 0; ///< bytes; sums of what does not depend on both sides
};

/// One captured float tensor.
struct Sm80Gradient : CapturedFloat {
  int64_t table = 0,
          largest =
              0; ///< bytes: 64-bit sums in fixed point, and the bits of the largest contribution
  int64_t contributions = 0; ///< to one element, at most
};

/// What gives one value of the region of score_grad at a score.
using ValueAt = function_ref<Value(Value)>;

/// Plans and emits the sums of what is contributed; see Sm80Captures.cpp.
class Sm80Captures {
public:
  Sm80Captures(AttentionGradOp op, const Shape &shape, const Sm80Config &queries,
               int64_t firstByte);

  bool empty() const { return gradients.empty(); }
  /// Whether some of it goes straight into a table.
  bool hasTables() const;
  int64_t scratchBytes() const { return end; }
  /// Contributions of this kind.
  SmallVector<const Sm80Contribution *> of(Dependence where) const;

  /// Kernels around those of the backward; blocks of 256 threads.
  int64_t clearBlocks() const { return llvm::divideCeil((end - clearFrom) / 8, threads); }
  void emitClear(GpuBuilder &b, func::FuncOp kernel) const;
  int64_t scatterBlocks() const;
  void emitScatter(GpuBuilder &b, func::FuncOp kernel) const;
  int64_t convertBlocks() const;
  void emitConvert(GpuBuilder &b, func::FuncOp kernel) const;
  static constexpr int64_t threads = 256;

  //===--- Inside the kernels of the backward -------------------------------===//
  /// What an element contributes, 0 where `keep` (or null) says so.
  Value valueOf(GpuBuilder &b, const Sm80Contribution &c, ValueAt at, Value keep) const;
  /// Keeps sum `index`, and that it may be the largest.
  void storeSum(GpuBuilder &b, const Sm80Contribution &c, Value index, Value sum) const;
  void noteLargest(GpuBuilder &b, const Sm80Contribution &c, Value size) const;
  /// Adds a value to the table, at a position of 32 or 64 bits.
  void addToTable(GpuBuilder &b, const Sm80Contribution &c, Value position, Value value) const;

private:
  Value scaleOf(GpuBuilder &b, const Sm80Gradient &gradient, int64_t sign) const;
  void scatterOne(GpuBuilder &b, const tile::ScoreFunction &function, const Sm80Contribution &c,
                  Value index) const;
  void convertOne(GpuBuilder &b, const Sm80Gradient &gradient, const Pointer &out,
                  Value index) const;

  AttentionGradOp op;
  const Shape &shape;
  SmallVector<Sm80Gradient> gradients;
  SmallVector<Sm80Contribution> contributions;
  int64_t clearFrom = 0, end = 0;
};

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80CAPTURES_H
