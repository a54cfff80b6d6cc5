//===- Compiler.h - From a model to an artifact --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What fsdp-compile does, as a library: runs the phases of Phases.def on a model.
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

/// A model on its way to an artifact.
struct StepCompilation {
  OwningOpRef<ModuleOp> module;
  StepOptions options;
  /// Whether the phase codegen compiles kernels; else it only measures their scratch.
  bool code = true;
  /// What codegen makes.
  CompiledKernels kernels = {};
  /// In which types each part of the step computes; filled after the phase update.
  SmallVector<DtypeRow> dtypes = {};
};

/// One entry of Phases.def.
struct Phase {
  StringRef mnemonic, sentence;
  LogicalResult (*run)(StepCompilation &);
};
ArrayRef<Phase> getPhases();

/// Runs the phases from `first` to `last`, both included. Errors are diagnostics.
LogicalResult runPhases(StepCompilation &step, StringRef first, StringRef last);

/// Runs shard to plan again with less memory, where a choice or a schedule under --memory-limit
/// cannot know the workspace of kernels, as long as that makes the arena smaller.
LogicalResult planWithinLimit(StepCompilation &step);

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_COMPILER_H
