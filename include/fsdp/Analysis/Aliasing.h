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

/// Name of the mesh axis over which units are sharded.
inline constexpr StringLiteral shardAxis = "shard";

/// Returns the number of ranks in a group of `collective`. A rank exchanges data only
/// with ranks of the same group.
int64_t getGroupSize(Operation *collective, SymbolTableCollection &tables);

/// Returns the number of iterations of `loop`, or nothing if a bound or the step is not constant.
std::optional<int64_t> getTripCount(scf::ForOp loop);

/// Offset in bytes at which a view begins in its source tensor. In iteration i of the loop around
/// the view, the offset is `bytes` + i · `stride`.
struct ViewOffset {
  int64_t bytes = 0, stride = 0;
};

/// Returns the offset of a contiguous slice. Returns nothing if the slice is not contiguous, or if
/// the offset is not affine in the induction variable of the surrounding loop.
std::optional<ViewOffset> getContiguousOffset(tensor::ExtractSliceOp op);

/// Finds which values of a function are views of the same memory, and the last op that reads the
/// content of each value. The position of an op is its index in the textual order of the function.
class Aliasing {
public:
  explicit Aliasing(func::FuncOp function);

  /// If `op` is a reshape, a slice, or a collective whose groups have one rank, its result is a
  /// view of an operand. Returns this operand, or null for all other ops.
  Value getViewSource(Operation *op);
  /// Returns the value at the root of the chain of views that ends in `value`.
  Value getBase(Value value);

  int64_t getPosition(Operation *op) const { return positions.lookup(op); }
  /// Returns the last position at which an op reads the content of `value` or of a view of `value`.
  /// If a loop reads a value from outside the loop, the position of the read is the end of the
  /// loop, because the next iteration reads the value again.
  int64_t getEnd(Value value);
  /// Declares that no kernel may overwrite `value`. The planner calls this method for each function
  /// argument that no result updates.
  void keep(Value value) { ends[value] = std::numeric_limits<int64_t>::max(); }

  /// Returns true if the kernel that `call` calls may overwrite operand `index`. This is the case
  /// if no later op reads the content of the operand, and no other operand of the call shares
  /// memory with the operand.
  bool mayOverwrite(KernelCallOp call, unsigned index);

private:
  DenseMap<Operation *, int64_t> positions;
  DenseMap<Value, int64_t> ends;
  SymbolTableCollection tables;
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_ALIASING_H
