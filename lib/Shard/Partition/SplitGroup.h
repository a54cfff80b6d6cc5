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
#include "llvm/ADT/SetVector.h"

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
  /// `context`, these are the values that do not depend on both parameters and the batch. On the
  /// axis `tensor`, these are parameters of which several ranks read copies of a part, and the
  /// operands of attention that is split alone. If rows are split, these are all values that are
  /// not computed on rows.
  bool isSliced(Value value) const {
    return axis.isContext() ? !isActivation(value)
           : axis.rows      ? !find(value)
                            : sliced.contains(value);
  }
  /// Returns true if `value` depends on both parameters and the batch. Known on the axis `context`,
  /// and if rows are split.
  bool isActivation(Value value) const {
    return ofParameters.contains(value) && ofBatch.contains(value);
  }
  /// Lets `value` stay whole, on the axis `tensor`.
  void keepWhole(Value value) { sliced.insert(value); }
  /// Returns true if `value` is a parameter or depends on one. Known on the axis `context` only.
  bool dependsOnParameters(Value value) const { return ofParameters.contains(value); }
  const SplitAxis &getAxis() const { return axis; }
  void setStriped(bool striped) { axis.striped = striped; }

  llvm::MapVector<Value, TensorSplit> splits;
  llvm::MapVector<Operation *, OpSplits> ops;
  llvm::SetVector<Value>
      sliced;      ///< whole values that split ops read in parts, on the axis `tensor`
  std::string why; ///< reason of the last failure
  Location where;  ///< place of the last failure
  /// The split dimension of the op at `where`, such as "dimension 1 of operand 0, of type
  /// tensor<2x8xf32>". Empty if an op is not the reason of the last failure.
  std::string dimension;

private:
  LogicalResult fail(const Twine &reason, Location at);
  LogicalResult fail(Operation *op, const Twine &reason, ValuePlace place,
                     const TensorSplit &split);
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
