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

/// Returns the number of ranks that exchange data with each other in a collective on tensors.
int64_t getGroupSize(Operation *collective, SymbolTableCollection &tables);

/// Returns the number of iterations of `loop`, or nothing if a bound or the step is not constant.
std::optional<int64_t> getTripCount(scf::ForOp loop);

/// Offset of a view in its source, in bytes. In iteration i of the loop around the view, the offset
/// is `bytes` + i · `stride`.
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

  /// Returns the operand of which the result of `op` is a view, if `op` is a reshape, a slice, or a
  /// collective within one rank. Returns null for all other ops.
  Value getViewSource(Operation *op);
  /// Returns the value at the root of the chain of views that ends in `value`.
  Value getBase(Value value);

  int64_t getPosition(Operation *op) const { return positions.lookup(op); }
  /// Returns the last position at which the content of `value` or of a view of it is read. If a
  /// loop reads a value that is defined outside the loop, the position of that read is the end of
  /// the loop, because the next iteration reads the value again.
  int64_t getEnd(Value value);
  /// Declares that no kernel may overwrite `value`. The planner calls this method for each argument
  /// of the function that no result updates.
  void keep(Value value) { ends[value] = std::numeric_limits<int64_t>::max(); }

  /// Returns true if the kernel that `call` calls may overwrite operand `index`. This is so if no
  /// later op reads the content of the operand, and if no other operand of the call shares memory
  /// with the operand.
  bool mayOverwrite(KernelCallOp call, unsigned index);

private:
  DenseMap<Operation *, int64_t> positions;
  DenseMap<Value, int64_t> ends;
  SymbolTableCollection tables;
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_ALIASING_H
