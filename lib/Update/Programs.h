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

/// An argument of a program that contains the parameters of a unit.
struct UnitArgument {
  UnitOp unit;
  unsigned index; ///< index of the argument
  bool trainable; ///< whether the unit has trainable parameters
};

/// A function with `fsdp.program`.
struct Program {
  func::FuncOp func;
  ProgramKind kind;
  SmallVector<UnitArgument> units;
  /// The last results of the program are gradients of looked-up rows. For each of these gradients,
  /// `rowOwners` contains the index of the result to which the gradient is added after the mean
  /// over shards.
  SmallVector<unsigned> rowOwners;
  /// Number of results with `fsdp.lookup`. These results precede the gradients of rows. They follow
  /// the gradients of units or, in eval, the loss.
  unsigned numLookups = 0;
  /// Number of ranks of the axis `tensor` whose slices the program has. Only the program
  /// `reference` has more than one.
  int64_t numSlices = 1;
  /// Number of parts of each result, in a leading dimension if there are several. Only the program
  /// `reference` has them, for the ranks of the axis `context`, before gradients are accumulated.
  int64_t numParts = 1;

  func::ReturnOp getReturn() const {
    Block &body = func::FuncOp(func).getBody().front();
    return cast<func::ReturnOp>(body.getTerminator());
  }
  /// Returns true if every rank of the mesh runs the program.
  bool isSharded() const { return kind != ProgramKind::Reference; }
  /// Returns how many flat buffers of a unit the program has: one for each slice of parameters.
  int64_t countBuffers(UnitOp unit) const;
  SmallVector<UnitArgument> getTrainable() const {
    return llvm::to_vector(
        llvm::make_filter_range(units, [](const UnitArgument &unit) { return unit.trainable; }));
  }
};

/// The mean over a global batch is computed at three levels: over replicas, over micro-batches, and
/// over shards. Each member is the number of terms at one level.
struct BatchLevels {
  int64_t replicate = 1, accumulate = 1, shard = 1;
  /// Ranks of the axis `context`, which are part of `shard` and compute parts of one gradient.
  int64_t context = 1;
  /// True if gradients of micro-batches are summed before they are reduced over ranks (no_sync). In
  /// this case, the mean over micro-batches is the innermost level. Otherwise the mean over the
  /// axis shard is the innermost level.
  bool sumFirst = false;
};

/// Tells whether the gradient of a unit has been reduced over the ranks. After the stage
/// Differentiate, the form is Adjoint, and the gradient has the same pieces as the parameters.
/// After all reductions, the form is Reduced, and the gradient has the same pieces as the optimizer
/// state.
enum class GradientForm { Adjoint, Reduced };

/// The programs of a module and the mesh that the step runs on.
struct Programs {
  SmallVector<Program> list;
  MeshOp mesh;
  BatchLevels levels;
};

/// Returns the number of samples of a micro-batch. This is the number of rows of the argument
/// `tokens`, or of the first batch argument if no argument is called `tokens`. Returns 1 if there
/// are no batch arguments. Must be called before the micro-batches become a leading dimension of
/// the batch.
int64_t countSamples(func::FuncOp func);

/// Builds the reduction of a value over the ranks of one axis.
Value createAllReduce(OpBuilder &builder, Location loc, Value value, MeshOp mesh, StringRef axis,
                      ReductionKind kind);

/// Reads the programs and units that every pass of Update relies on. Fails with an error unless a
/// step returns `leading`, then one gradient per trainable unit, then checks of lookups.
FailureOr<Programs> readPrograms(ModuleOp module, StringRef leading, GradientForm form);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_LIB_UPDATE_PROGRAMS_H
