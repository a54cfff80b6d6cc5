//===- Aliasing.h - Values that share memory --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_ALIASING_H
#define FSDP_ANALYSIS_ALIASING_H

#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::fsdp {

/// The axis of a mesh over which units are sharded.
inline constexpr StringLiteral shardAxis = "shard";

/// The ranks that take part in a collective on tensors: 1 when nothing leaves the rank.
int64_t getGroupSize(Operation *collective, SymbolTableCollection &tables);

/// Iterations of a loop with constant bounds.
std::optional<int64_t> getTripCount(scf::ForOp loop);

/// Where a view begins in its source: `bytes`, and `stride` more per iteration of the loop around
/// it.
struct ViewOffset {
  int64_t bytes = 0, stride = 0;
};

/// The range of a contiguous slice; nothing when it is not contiguous or when
/// its offset is not affine in the induction variable of the loop around it.
std::optional<ViewOffset> getContiguousOffset(tensor::ExtractSliceOp op);

/// Which values of a function share memory by themselves, and how long the content of each is read.
/// Positions number the ops of the function in the order in which they print.
class Aliasing {
public:
  explicit Aliasing(func::FuncOp function);

  /// The value that the results of `op` are ranges of: a reshape, a slice, a
  /// collective within one rank. Null for all other ops.
  Value getViewSource(Operation *op);
  /// What `value` is a view of, over any number of views.
  Value getBase(Value value);

  int64_t getPosition(Operation *op) const { return positions.lookup(op); }
  /// The last position at which the content of `value` is read, through views
  /// too. A value from outside of a loop that is read in it is read until the loop ends.
  int64_t getEnd(Value value);
  /// `value` is never overwritten: an argument that no result updates.
  void keep(Value value) { ends[value] = std::numeric_limits<int64_t>::max(); }

  /// Whether the kernel may write over operand `index`: no one reads that content later, and no
  /// other operand is it. The answer is about the values alone, not about where they lie.
  bool mayOverwrite(KernelCallOp call, unsigned index);

private:
  DenseMap<Operation *, int64_t> positions;
  DenseMap<Value, int64_t> ends;
  SymbolTableCollection tables;
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_ALIASING_H
