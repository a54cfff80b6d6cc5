//===- Compiler.h - From a model to an artifact --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The phases of fsdp-compile as a library: runs the phases of Phases.def on a model.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_COMPILER_H
#define FSDP_PIPELINES_COMPILER_H

#include "fsdp/Analysis/DtypeFlow.h"
#include "fsdp/IR/KernelImage.h"
#include "fsdp/Options/Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::fsdp {

/// A model while it is compiled to an artifact.
struct StepCompilation {
  OwningOpRef<ModuleOp> module;
  StepOptions options;
  /// Whether the phase codegen compiles kernels; if not, it only measures their workspace.
  bool code = true;
  /// Kernels that the phase codegen made.
  CompiledKernels kernels = {};
  /// Types in which each part of the step computes; set after the phase update.
  SmallVector<DtypeRow> dtypes = {};
};

/// One entry of Phases.def.
struct Phase {
  StringRef mnemonic, sentence;
  LogicalResult (*run)(StepCompilation &);
};
ArrayRef<Phase> getPhases();

/// Runs the phases from `first` to `last`, both included. Errors are reported as diagnostics.
LogicalResult runPhases(StepCompilation &step, StringRef first, StringRef last);

/// Runs the phases shard to plan. If a choice or a schedule has to keep to --memory-limit, which
/// does not know the workspace of kernels, repeats this with a lower limit as long as the arena
/// gets smaller.
LogicalResult planWithinLimit(StepCompilation &step);

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_COMPILER_H
