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

/// Part of a training step. Each op belongs to one part.
enum class StepPart {
  model,     ///< ops of the forward and the backward that are in no other part
  loss,      ///< ops that reduce the loss and store it in the step block
  gradient,  ///< ops that convert, add and reduce the gradients of units
  norm,      ///< ops that compute the norm of the gradients and store it in the step block
  optimizer, ///< ops that update parameters and optimizer state
};
StringRef stringifyStepPart(StepPart part);

/// Assigns each op to a part of the step. To find the part of an op, follows chains of operands
/// backwards from the results of the program.
class StepParts {
public:
  /// `program` is the function of a program after the stage Update.
  explicit StepParts(func::FuncOp program);

  StepPart operator[](Operation *op) const { return parts.lookup_or(op, StepPart::model); }
  /// Returns the unit whose gradient `op` computes. Returns null if `op` is not in the part
  /// `gradient`.
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

/// A row of the table of types. The row describes all ops that belong to the same part of the step,
/// are of the same kind (`what`), and have the same types (`types`).
struct DtypeRow {
  StepPart part;
  /// Kind of the ops: a word such as "product", "reduction" or "conversion", or the name of a
  /// collective.
  std::string what;
  std::string types; ///< types as text, such as `bf16 x bf16 -> f32`
  /// In one step, the ops of this row run `count` times. All these runs together write, send or
  /// keep `elements` elements, which take `bytes` bytes.
  int64_t count = 0, elements = 0, bytes = 0;
};

/// Returns the rows of the table for the program `step`, sorted by part. Returns no rows if the
/// module has no program `step`. If `roundsToTF32` is true, f32 factors of products are named tf32.
SmallVector<DtypeRow> measureDtypes(ModuleOp updated, bool roundsToTF32 = false);

/// The function that writes to `os` writes a table, and omits the rows of the part `model` unless
/// `all` is set. The function that writes to `json` writes all rows as the JSON array `dtypes`.
void writeDtypes(ArrayRef<DtypeRow> rows, bool all, raw_ostream &os);
void writeDtypes(ArrayRef<DtypeRow> rows, llvm::json::OStream &json);

/// Returns true if `outer` has at least the precision and at least the maximum exponent of `inner`.
bool holdsAll(FloatType outer, FloatType inner);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_DTYPEFLOW_H
