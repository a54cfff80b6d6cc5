//===- SplitGroup.h - Values that are split together ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PARTITION_SPLITGROUP_H
#define FSDP_LIB_SHARD_PARTITION_SPLITGROUP_H

#include "SplitRules.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fsdp {

/// The values of a function that are split over an axis of `ranks` ranks, and the ops that compute
/// or read them. All other values are whole.
class SplitGroup {
public:
  SplitGroup(func::FuncOp func, SplitAxis axis);

  /// Splits `seed`, and all values that must be split with it. If an op cannot be split, changes
  /// nothing, sets `why` and `where`, and fails.
  LogicalResult spread(Value seed, const TensorSplit &split);

  /// Returns the split of `value`, or null if it is whole.
  const TensorSplit *find(Value value) const;
  bool isEmpty() const { return splits.empty(); }
  /// Returns true if `value` stays whole, and split ops read the own slice of it. On the axis
  /// `context`, these are the values that do not depend on both parameters and the batch.
  bool isSliced(Value value) const {
    return axis.isContext() && !(ofParameters.contains(value) && ofBatch.contains(value));
  }
  /// Returns true if `value` is a parameter or depends on one. Known on the axis `context` only.
  bool dependsOnParameters(Value value) const { return ofParameters.contains(value); }
  const SplitAxis &getAxis() const { return axis; }
  void setStriped(bool striped) { axis.striped = striped; }

  llvm::MapVector<Value, TensorSplit> splits;
  llvm::MapVector<Operation *, OpSplits> ops;
  std::string why; ///< reason of the last failure
  Location where;  ///< place of the last failure

private:
  LogicalResult fail(const Twine &reason, Location at);
  LogicalResult add(Value value, const TensorSplit &split);
  LogicalResult visit(Operation *op, ValuePlace place, const TensorSplit &split);
  LogicalResult visit(Value value);

  func::FuncOp func;
  SplitAxis axis;
  DenseSet<Value> ofParameters, ofBatch; ///< values that depend on parameters, or on the batch
  SmallVector<Value> open;               ///< values whose ops are not visited yet
};

/// Describes a value for messages: "parameter 'h.0.w'", or "a result of a 'linalg.generic'".
std::string describeSplitValue(func::FuncOp func, Value value);

/// Returns a list of the numbers that divide `size`, such as "1, 2, 4". The list has at most 12
/// numbers.
std::string listDivisors(int64_t size);

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PARTITION_SPLITGROUP_H
