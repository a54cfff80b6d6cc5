//===- Passes.h - Passes of the Plan stage ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_PASSES_H
#define FSDP_PLAN_PASSES_H

#include "fsdp/IR/FSDP.h"
#include "fsdp/Options/Defaults.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::fsdp {

#define GEN_PASS_DECL
#include "fsdp/Plan/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fsdp/Plan/Passes.h.inc"

struct StepOptions;
/// Appends the passes of the stage Plan. They turn dispatches into kernels, and they turn functions
/// into programs over packed arenas. The last pass is fsdp-verify-planned.
void buildPlanPipeline(OpPassManager &pm, const StepOptions &options);
/// Append the two parts of buildPlanPipeline(). The first part turns functions into programs over
/// buffers. It reads --memory-limit and --prefetch only with --activation-checkpointing=auto. The
/// second part moves collectives and places the buffers in arenas.
void buildBufferPipeline(OpPassManager &pm, const StepOptions &options);
void buildArenaPipeline(OpPassManager &pm, const StepOptions &options);

} // namespace mlir::fsdp

#endif // FSDP_PLAN_PASSES_H
