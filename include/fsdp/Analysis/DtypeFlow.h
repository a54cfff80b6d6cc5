//===- DtypeFlow.h - Types in which a step computes -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_DTYPEFLOW_H
#define FSDP_ANALYSIS_DTYPEFLOW_H

#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace llvm::json {
class OStream;
} // namespace llvm::json

namespace mlir::fsdp {

/// Part of a step that an op belongs to.
enum class StepPart {
  model,     ///< forward and backward
  loss,      ///< ops from the reductions of the loss to the step block
  gradient,  ///< ops from a unit's cotangents to the unit's update
  norm,      ///< ops from the gradients to the step block
  optimizer, ///< parameters and state
};
StringRef stringifyStepPart(StepPart part);

/// Assigns each op to a part of the step by walking backwards from the results of the program.
class StepParts {
public:
  /// `program` is a program after the stage Update.
  explicit StepParts(func::FuncOp program);

  StepPart operator[](Operation *op) const { return parts.lookup_or(op, StepPart::model); }
  /// Returns the unit whose gradient `op` computes; null unless `op` is in the part `gradient`.
  FlatSymbolRefAttr getUnit(Operation *op) const { return units.lookup(op); }

private:
  void followState(Value v, FlatSymbolRefAttr unit);
  void followGradient(Value v, FlatSymbolRefAttr unit);
  void followNorm(Value v);
  void followLoss(Value v);
  void followFactor(Value v);
  bool mark(Operation *op, StepPart part);

  DenseMap<Operation *, StepPart> parts;
  DenseMap<Operation *, FlatSymbolRefAttr> units;
};

/// One row of the table of types: the ops of one part that have equal kinds and types.
struct DtypeRow {
  StepPart part;
  std::string
      what; ///< product, reduction, conversion, rounding, accumulation, state, or a collective
  std::string types; ///< `bf16 x bf16 -> f32`
  /// In one step: executions of these ops, elements that the ops write, send or keep, and bytes of
  /// these elements.
  int64_t count = 0, elements = 0, bytes = 0;
};

/// Returns the rows of the program `step`, sorted by part; no rows if there is no such program.
SmallVector<DtypeRow> measureDtypes(ModuleOp updated);

/// Write the rows as a table, or as the JSON array `dtypes`. The table omits the rows of the part
/// `model` unless `all` is set.
void writeDtypes(ArrayRef<DtypeRow> rows, bool all, raw_ostream &os);
void writeDtypes(ArrayRef<DtypeRow> rows, llvm::json::OStream &json);

/// Returns true if `outer` has at least the precision and the maximum exponent of `inner`.
bool holdsAll(FloatType outer, FloatType inner);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_DTYPEFLOW_H
