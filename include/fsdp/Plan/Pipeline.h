//===- Pipeline.h - The order of the Plan stage -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_PIPELINE_H
#define FSDP_PLAN_PIPELINE_H

namespace mlir {
class OpPassManager;
namespace fsdp {

/// Nothing to choose yet: the plan follows from the step.
struct PlanOptions {};

/// Dispatches to kernels and programs over packed arenas; ends in fsdp-verify-planned.
void buildPlanPipeline(OpPassManager &pm, const PlanOptions &options);

/// Makes it known to fsdp-opt as --fsdp-plan.
void registerPlanPipeline();

} // namespace fsdp
} // namespace mlir

#endif // FSDP_PLAN_PIPELINE_H
