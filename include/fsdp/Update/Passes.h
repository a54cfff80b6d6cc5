//===- Passes.h - Passes of the Update stage --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_UPDATE_PASSES_H
#define FSDP_UPDATE_PASSES_H

#include "fsdp/Options/Defaults.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
namespace fsdp {

#define GEN_PASS_DECL
#include "fsdp/Update/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fsdp/Update/Passes.h.inc"

/// Attribute of a module without the program `reference`. A compilation that only measures the plan
/// of a step leaves this program out, because it takes as long to compile as the step.
inline constexpr StringLiteral noReferenceAttr = "fsdp.no_reference";

struct StepOptions;
/// Appends the passes of Update, which add the optimizer's update of the state. The last pass is
/// fsdp-verify-updated.
void buildUpdatePipeline(OpPassManager &pm, const StepOptions &options);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_UPDATE_PASSES_H
