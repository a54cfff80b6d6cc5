//===- Passes.h - Passes of the Import stage --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IMPORT_PASSES_H
#define FSDP_IMPORT_PASSES_H

#include "fsdp/IR/FSDP.h"
#include "fsdp/Options/Defaults.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
namespace fsdp {
#define GEN_PASS_DECL
#include "fsdp/Import/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fsdp/Import/Passes.h.inc"

struct StepOptions;
/// Appends the passes of Import, which convert the MLIR of an exporter to the model contract of
/// docs/explanation/pipeline.md, section 1.
void buildImportPipeline(OpPassManager &pm, const StepOptions &options);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_IMPORT_PASSES_H
