//===- GpuKernels.h - An artifact's kernels for a GPU -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_PIPELINES_GPUKERNELS_H
#define FSDP_LIB_PIPELINES_GPUKERNELS_H

#include "fsdp/Pipelines/Compiler.h"

namespace mlir::fsdp {

/// The chip that the options name, and who computes contractions for it.
FailureOr<GpuTarget> getGpuTarget(const CompileOptions &options, Location loc);

/// Sets what the GPU that the options name decides, of what nothing else has: the rest are as they
/// were. Options that are fitted stay as they are.
LogicalResult fitToGpu(CompileOptions &options, Location loc);

/// Compiles the kernels of a planned module for the GPU that the options name; without `code` only
/// what they need.
FailureOr<Kernels> compileForGpu(ModuleOp planned, const CompileOptions &options, bool code);

} // namespace mlir::fsdp

#endif // FSDP_LIB_PIPELINES_GPUKERNELS_H
