//===- KernelSteps.h - The values of a kernel that are computed and kept --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_KERNELSTEPS_H
#define FSDP_LIB_CODEGEN_KERNEL_KERNELSTEPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

enum class StepKind { Map, RowReduction, ColumnReduction, Scatter };

/// A value of the kernel that is computed once and then kept in memory, or in a register while a
/// row is processed. Values that are not steps are computed again at each use.
struct Step {
  explicit Step(Value value) : value(value) {}

  Value value;
  StepKind kind = StepKind::Map;
  /// These members are set if the step is a reduction. The step is result `result` of `op`.
  /// `combiner` is an op in the body of `op` that defines how partial results are combined.
  linalg::GenericOp op;
  unsigned result = 0;
  Operation *combiner = nullptr;
  /// Arguments of the kernel to which the value is written, because the kernel returns it.
  SmallVector<BlockArgument> destinations;

  RankedTensorType getType() const { return cast<RankedTensorType>(value.getType()); }
  bool isReduction() const {
    return kind == StepKind::RowReduction || kind == StepKind::ColumnReduction;
  }
};

/// Returns the steps of a kernel in an order in which they can run. Returns nothing if the
/// kernel contains a reduction that only the general lowering supports.
std::optional<SmallVector<Step>> collectSteps(func::FuncOp kernel);

/// Returns the sizes of the reduced loops of a reduction, in the order of the loops.
SmallVector<int64_t> getReducedShape(const Step &step);

/// Returns true if computing `step` reads `value`, directly or through values that are not steps.
bool readsValue(const Step &step, Value value, ArrayRef<Step> steps);

/// Emits the op that combines the partial results `a` and `c`: an addition if `combiner` is an fma
/// or a subtraction, and otherwise the same op as `combiner`.
Value combine(OpBuilder &b, Location loc, Operation *combiner, Value a, Value c);
/// Returns true if `value`, in the body of `op`, depends on an output argument of the body.
bool dependsOnOutput(linalg::GenericOp op, Value value);

/// Returns the neutral element of `combiner`, or null if `combiner` has no neutral element.
TypedAttr getIdentity(Operation *combiner, Type element);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_KERNELSTEPS_H
