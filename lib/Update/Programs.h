//===- Programs.h - The functions of a training step ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_UPDATE_PROGRAMS_H
#define FSDP_LIB_UPDATE_PROGRAMS_H

#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fsdp {

enum class ProgramKind { Step, Eval, Reference };

/// A unit as an argument of a program.
struct UnitArgument {
  UnitOp unit;
  unsigned index; ///< of the argument that is its parameters
  bool trainable; ///< has parameters that are trained
};

/// A function with `fsdp.program`.
struct Program {
  func::FuncOp func;
  ProgramKind kind;
  SmallVector<UnitArgument> units;
  /// Results after the gradients, which are added to them after the mean over the axis shard:
  /// what rows that were looked up add. Of each the number of the result that it belongs to.
  SmallVector<unsigned> rowOwners;
  /// Results after the gradients (in eval: after the loss), in front of those of rows:
  /// `fsdp.lookup`.
  unsigned numLookups = 0;

  func::ReturnOp getReturn() const {
    Block &body = func::FuncOp(func).getBody().front();
    return cast<func::ReturnOp>(body.getTerminator());
  }
  /// Runs on the mesh, among other ranks.
  bool isSharded() const { return kind != ProgramKind::Reference; }
  SmallVector<UnitArgument> getTrainable() const {
    return llvm::to_vector(
        llvm::make_filter_range(units, [](const UnitArgument &unit) { return unit.trainable; }));
  }
};

/// How many pieces the mean over a global batch has, level by level.
struct BatchLevels {
  int64_t replicate = 1, accumulate = 1, shard = 1;
  /// Gradients of micro-batches are summed before they cross ranks (no_sync):
  /// micro-batches are the innermost level, not the ranks of the axis shard.
  bool sumFirst = false;
};

/// What a program returns for a unit: what Differentiate makes, in the pieces of
/// the parameters; or what is left behind all reductions, in those of the
/// optimizer's state.
enum class GradientForm { Adjoint, Reduced };

/// The programs of a module with the mesh that the step runs on.
struct Programs {
  SmallVector<Program> list;
  MeshOp mesh;
  BatchLevels levels;
};

/// Samples of a micro-batch, before it gets its leading dimension: rows of the argument `tokens`,
/// else of the first batch argument; 1 without any.
int64_t countSamples(func::FuncOp func);

/// The reduction of a value over the ranks of one axis.
Value createAllReduce(OpBuilder &builder, Location loc, Value value, MeshOp mesh, StringRef axis,
                      ReductionKind kind);

/// Reads and checks what every pass of Update relies on: programs, units, and
/// that a step returns `leading`, then one gradient per trainable unit, then checks of lookups.
FailureOr<Programs> readPrograms(ModuleOp module, StringRef leading, GradientForm form);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_LIB_UPDATE_PROGRAMS_H
