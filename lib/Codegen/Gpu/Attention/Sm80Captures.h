//===- Sm80Captures.h - Gradients of captured tensors on GPUs ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80CAPTURES_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80CAPTURES_H

#include "Codegen/Kernel/Attention/AttentionContributions.h"
#include "Sm80Attention.h"

namespace mlir::fsdp::attention {

/// One op `fsdp.contribute`, and the location of its partial sums (f32) in the scratch.
struct Sm80Contribution : Contributed {
  /// Offset of the partial sums in bytes (`offset`), and their number (`count`). The number is 0 if
  /// the indices depend on both q and k.
  int64_t offset = 0, count = 0;
};

/// The gradient of one captured float tensor.
struct Sm80Gradient : CapturedFloat {
  /// Offsets in bytes: `table` is the offset of the table of sums, which are 64-bit fixed-point
  /// numbers. `largest` is the offset of an f32 that contains the largest magnitude of a
  /// contribution.
  int64_t table = 0, largest = 0;
  int64_t contributions = 0; ///< maximum number of contributions that are added to one element
};

/// Type of a function that maps a value of the region of score_grad to the value that was emitted
/// for the current element.
using ValueAt = function_ref<Value(Value)>;

/// Returns the larger of x and y, or NaN if either is NaN.
Value largerOrNan(GpuBuilder &b, Value x, Value y);

/// Plans and emits the sums of contributions; see Sm80Captures.cpp.
class Sm80Captures {
public:
  /// `headSums` is the number of partial sums of a head, for contributions that depend on no key
  /// and on no query. `keyBlocks` is the number of blocks of keys, each of which has a partial sum
  /// of a query, or 0 if the kernel that owns queries sums them. `firstByte` is the first free byte
  /// of the scratch.
  Sm80Captures(AttentionGradOp op, const Shape &shape, int64_t headSums, int64_t keyBlocks,
               int64_t firstByte);

  bool empty() const { return gradients.empty(); }
  /// Returns true if some contributions are added directly to a table.
  bool hasTables() const;
  int64_t scratchBytes() const { return end; }
  /// Returns the contributions whose indices depend on the arguments `where` and on no other
  /// arguments.
  SmallVector<const Sm80Contribution *> of(Dependence where) const;

  /// Three launches belong to the contributions. The launch `clear` runs before the kernels of the
  /// backward pass, and the launches `scatter` and `convert` run after them. For each launch, one
  /// function returns the number of blocks, and one function emits the code. Each block has 256
  /// threads.
  int64_t clearBlocks() const { return llvm::divideCeil((end - clearFrom) / 8, threads); }
  void emitClear(GpuBuilder &b, func::FuncOp kernel) const;
  int64_t scatterBlocks() const;
  void emitScatter(GpuBuilder &b, func::FuncOp kernel) const;
  int64_t convertBlocks() const;
  void emitConvert(GpuBuilder &b, func::FuncOp kernel) const;
  static constexpr int64_t threads = 256;

  //===--- Inside the backward kernels ---------------------------------------===//
  /// Returns the contribution of an element, or 0 if `keep` is false at run time. A null `keep`
  /// means true.
  Value valueOf(GpuBuilder &b, const Sm80Contribution &c, ValueAt at, Value keep) const;
  /// storeSum() stores `sum` as the partial sum with the number `index`, and notes its magnitude.
  /// storePart() only stores it. noteLargest() sets the stored largest magnitude to |size| if
  /// |size| is larger than the stored value.
  void storePart(GpuBuilder &b, const Sm80Contribution &c, Value index, Value sum) const;
  void storeSum(GpuBuilder &b, const Sm80Contribution &c, Value index, Value sum) const;
  void noteLargest(GpuBuilder &b, const Sm80Contribution &c, Value size) const;
  /// Returns the power of two by which contributions to the table of `c` are multiplied.
  Value scaleOf(GpuBuilder &b, const Sm80Contribution &c) const {
    return scaleOf(b, gradients[c.gradient], 1);
  }
  /// Adds the contributions of an element that depend on query and key to their tables, if `keep`
  /// is true. `grad` is score_grad, and `scales` are the results of scaleOf() for them.
  void addToTables(GpuBuilder &b, const tile::ScoreFunction &grad, ArrayRef<Value> scales,
                   ValueAt at, const tile::Site &site, FragmentFunction::Values &values,
                   Value keep) const;

private:
  void addToTable(GpuBuilder &b, const Sm80Contribution &c, Value position, Value value,
                  Value scale) const;
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
