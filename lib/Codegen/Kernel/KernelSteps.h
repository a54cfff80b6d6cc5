//===- KernelSteps.h - What a kernel must compute one by one ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Private to the stage.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_KERNELSTEPS_H
#define FSDP_LIB_CODEGEN_KERNEL_KERNELSTEPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

enum class StepKind { Map, RowReduction, ColumnReduction, Scatter };

/// One value that is computed and kept (in memory or, within a row, in a
/// register); everything between steps is evaluated where it is read.
struct Step {
  explicit Step(Value value) : value(value) {}

  Value value;
  StepKind kind = StepKind::Map;
  /// Of reductions: the op, and an op of its body that says how partial results
  /// combine.
  linalg::GenericOp op;
  unsigned result = 0;
  Operation *combiner = nullptr;
  /// Arguments that the value is returned in.
  SmallVector<BlockArgument> destinations;

  RankedTensorType getType() const { return cast<RankedTensorType>(value.getType()); }
  bool isReduction() const {
    return kind == StepKind::RowReduction || kind == StepKind::ColumnReduction;
  }
};

/// The steps of a kernel, in an order in which they can run; nothing when the
/// kernel holds what only the general lowering takes.
std::optional<SmallVector<Step>> collectSteps(func::FuncOp kernel);

/// Sizes of the loops that a reduction sums over, in order.
SmallVector<int64_t> getReducedShape(const Step &step);

/// Whether computing `step` reads `value`, directly or through what is evaluated
/// in place.
bool readsValue(const Step &step, Value value, ArrayRef<Step> steps);

/// The combination of two partial results; fma and differences combine by addition.
Value combine(OpBuilder &b, Location loc, Operation *combiner, Value a, Value c);
/// Whether `value`, in the body of `op`, depends on one of its results.
bool dependsOnOutput(linalg::GenericOp op, Value value);

/// What leaves a partial result as it is.
TypedAttr getIdentity(Operation *combiner, Type element);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_KERNELSTEPS_H
