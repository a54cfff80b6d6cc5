//===- Passes.h - Passes that print analyses --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_PASSES_H
#define FSDP_ANALYSIS_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::fsdp {
#define GEN_PASS_DECL
#include "fsdp/Analysis/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fsdp/Analysis/Passes.h.inc"
} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_PASSES_H
