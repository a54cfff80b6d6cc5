//===- Compiler.h - From a model to an artifact -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What fsdp-compile does, as a library: runs the stages in the order of
// Phases.def, then Codegen and Package.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_COMPILER_H
#define FSDP_PIPELINES_COMPILER_H

#include "fsdp/Analysis/DtypeFlow.h"
#include "fsdp/Analysis/GpuCode.h"
#include "fsdp/Analysis/KernelImage.h"
#include "fsdp/Codegen/Gpu/GpuImage.h"
#include "fsdp/Differentiate/Pipeline.h"
#include "fsdp/Fuse/Pipeline.h"
#include "fsdp/Import/Pipeline.h"
#include "fsdp/Plan/Pipeline.h"
#include "fsdp/Shard/Pipeline.h"
#include "fsdp/Update/Pipeline.h"
#include "mlir/IR/BuiltinOps.h"
#include <functional>

namespace mlir::fsdp {

struct CompileOptions {
  ImportOptions import;
  ShardOptions shard;
  DifferentiateOptions differentiate;
  UpdateOptions update;
  FuseOptions fuse;
  PlanOptions plan;

  std::string target = "cpu"; ///< cpu, reference, or the chip of a GPU
  GpuOptions gpu;             ///< with the latter
  std::string targetCpu;      ///< empty: the host
  std::string kernelCache;    ///< folder of kernels for CPUs that were compiled before; empty: none
  unsigned threadsPerRank = 1; ///< worker threads that kernels may use
  std::string source;          ///< name of the model file, for the artifact
  std::string compiler;        ///< name and version of the compiler, for the artifact
  double learningRate = 3e-4;  ///< default of fsdp-run
  std::string dumpDirectory;   ///< IR after each phase; empty: none
  bool timing = false;         ///< time of each phase and pass on stderr
  /// Called with the imported model; may still change the options of later phases.
  std::function<LogicalResult(ModuleOp)> afterImport = nullptr;
};

/// What an artifact has of code.
struct Kernels {
  Image image;
  GpuCode gpu; ///< what the image holds when it is for a GPU
};

/// One entry of Phases.def.
struct Phase {
  StringRef mnemonic, sentence;
  void (*build)(OpPassManager &, const CompileOptions &);
};
ArrayRef<Phase> getPhases();

/// Runs the phases up to and including `last` (all when empty) on `module`.
/// Behind Import, sets the options that the target decides where they are not given.
/// Errors are diagnostics.
LogicalResult runPhases(ModuleOp module, CompileOptions &options, StringRef last = {},
                        SmallVectorImpl<DtypeRow> *dtypes = nullptr);

/// Reduces a planned module to its kernels, as phase functions (`--compile-to=codegen`).
LogicalResult lowerKernels(ModuleOp planned, const CompileOptions &options);

/// Compiles the kernels of a planned module, and gives its arenas the scratch
/// that they need: from here on the plan is exact. Without `code` the image stays empty.
FailureOr<Kernels> compileKernels(ModuleOp planned, const CompileOptions &options,
                                  bool code = true);

/// Prints the kernels of a planned module that there is GPU code for, as ptx, kernel-mlir or
/// sass-stats. A warning at its place names each other one.
LogicalResult printGpuKernels(ModuleOp planned, const CompileOptions &options, StringRef what,
                              llvm::raw_ostream &os);

/// Writes the artifact to `path`; nothing is left there on failure.
LogicalResult writeArtifact(ModuleOp planned, const Kernels &kernels, const CompileOptions &options,
                            StringRef path);

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_COMPILER_H
