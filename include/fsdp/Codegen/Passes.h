//===- Passes.h - Passes of Codegen -----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_PASSES_H
#define FSDP_CODEGEN_PASSES_H

#include "fsdp/Options/Defaults.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/Pass.h"

namespace mlir::fsdp {
#define GEN_PASS_DECL
#include "fsdp/Codegen/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fsdp/Codegen/Passes.h.inc"

struct StepOptions;
struct CompiledKernels;
/// Registers the CPU and GPU targets in the registry of TargetInfo.
void registerTargets();

/// Creates the pass that compiles kernels into `result`. If `code` is false, the pass does not
/// generate code and only computes the launches and scratch sizes of the kernels.
std::unique_ptr<Pass> createCompileKernelsPass(const StepOptions &options, bool code,
                                               std::shared_ptr<CompiledKernels> result);

/// Appends passes that prepare a module for printing after the stage Codegen. The passes replace
/// kernels by their phase functions and erase all other ops of the module.
void buildCodegenPipeline(OpPassManager &pm, const StepOptions &options);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_PASSES_H
