//===- Passes.h - Passes of Differentiate -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_DIFFERENTIATE_PASSES_H
#define FSDP_DIFFERENTIATE_PASSES_H

#include "fsdp/Options/Defaults.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::fsdp {
#define GEN_PASS_DECL
#include "fsdp/Differentiate/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fsdp/Differentiate/Passes.h.inc"

struct StepOptions;
/// Appends the passes of Differentiate, which add the backward to the sharded forward
/// (docs/explanation/pipeline.md, section 3).
void buildDifferentiatePipeline(OpPassManager &pm, const StepOptions &options);

} // namespace mlir::fsdp

#endif // FSDP_DIFFERENTIATE_PASSES_H
