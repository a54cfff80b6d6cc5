//===- Compiler.h - From a model to an artifact --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Library of fsdp-compile: runs the phases of Phases.def on a model.
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

/// State of the compilation of a model to an artifact.
struct StepCompilation {
  OwningOpRef<ModuleOp> module;
  StepOptions options;
  /// If true, the phase codegen compiles the kernels. If false, the phase only measures the
  /// workspace of the kernels.
  bool code = true;
  /// If true, the compilation only measures the plan of the programs `step` and `eval`. It leaves
  /// out the program `reference`, and does not verify the IR between passes.
  bool onlyMeasures = false;
  /// If true, the first part of the phase plan has run on the module (buildBufferPipeline).
  bool hasBuffers = false;
  /// If true, the module has the scratch sizes of its kernels (assignBuffers). The phase codegen
  /// does not measure them again.
  bool hasScratch = false;
  /// If set, planFused() calls this function with each plan that does not fit into --memory-limit.
  /// If the function returns true, no other schedule can fit, and planFused() keeps this plan.
  std::function<bool(ModuleOp)> cannotFit = {};
  /// Kernels that the phase codegen compiled.
  CompiledKernels kernels = {};
  /// Rows of the table of types (DtypeFlow.h). The phase update computes these rows.
  SmallVector<DtypeRow> dtypes = {};
};

/// One entry of Phases.def.
struct Phase {
  StringRef mnemonic, sentence;
  LogicalResult (*run)(StepCompilation &);
};
ArrayRef<Phase> getPhases();

/// Runs the phases from `first` to `last`, both included. Reports errors as diagnostics.
LogicalResult runPhases(StepCompilation &step, StringRef first, StringRef last);

/// Runs the phases from shard to plan. The arena that these phases plan does not include the
/// workspace of kernels. If the arena and the workspace together exceed --memory-limit, runs the
/// phases again with a lower limit. Repeats this at most five times, and only as long as the arena
/// becomes smaller. If --param-storage=auto stands for `both` and such a plan does not fit, sets
/// the option to `master` and plans again.
LogicalResult planWithinLimit(StepCompilation &step);

/// Runs the first part of the phase plan. Modules on which it has run may be planned with different
/// values of --prefetch and --memory-limit, unless --activation-checkpointing is auto. If
/// `step.onlyMeasures` is true, also measures the workspace of the kernels.
LogicalResult assignBuffers(StepCompilation &step);

/// Runs the second part of planWithinLimit(): the phase plan, for a module on which the phases up
/// to fuse have run. Emits only diagnostics of the plan that is kept. If `step.onlyMeasures` is
/// true, the phase codegen has also run on the module afterwards.
LogicalResult planFused(StepCompilation &step);

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_COMPILER_H
