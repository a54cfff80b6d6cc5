//===- DtypeFlow.h - In which types a step computes -------------*- C++ -*-===//
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

/// What an op of a step is for.
enum class StepPart {
  model,     ///< forward and backward
  loss,      ///< from the model's last reduction to the step block
  gradient,  ///< from the cotangents of a unit to its update
  norm,      ///< from the gradients to the step block
  optimizer, ///< parameters and state
};
StringRef stringifyStepPart(StepPart part);

/// Which part of the step each op belongs to, found from what the program returns.
class StepParts {
public:
  /// A program after Update.
  explicit StepParts(func::FuncOp program);

  StepPart operator[](Operation *op) const { return parts.lookup_or(op, StepPart::model); }
  /// The unit whose gradient an op of that part makes.
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

/// Ops of one part that do the same in the same types.
struct DtypeRow {
  StepPart part;
  std::string
      what; ///< product, reduction, conversion, rounding, accumulation, state, or a collective
  std::string types; ///< `bf16 x bf16 -> f32`
  /// In one step, loops unrolled: how many; elements written, sent or kept, and their bytes.
  int64_t count = 0, elements = 0, bytes = 0;
};

/// Of the program `step`, in its order; empty where there is none.
SmallVector<DtypeRow> measureDtypes(ModuleOp updated);

/// As a table: all rows, or without those of the model.
void writeDtypes(ArrayRef<DtypeRow> rows, bool all, raw_ostream &os);
void writeDtypes(ArrayRef<DtypeRow> rows, llvm::json::OStream &json);

/// Does every number of `inner` have a place in `outer`?
bool holdsAll(FloatType outer, FloatType inner);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_DTYPEFLOW_H
