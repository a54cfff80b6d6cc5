//===- Passes.h - Passes of Report ---------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_REPORT_PASSES_H
#define FSDP_REPORT_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::fsdp {
#define GEN_PASS_DECL
#include "fsdp/Report/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fsdp/Report/Passes.h.inc"
} // namespace mlir::fsdp

#endif // FSDP_REPORT_PASSES_H
