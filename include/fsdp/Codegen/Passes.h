//===- Passes.h - Passes of Codegen -----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_PASSES_H
#define FSDP_CODEGEN_PASSES_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/Pass.h"

namespace mlir::fsdp {
#define GEN_PASS_DECL
#include "fsdp/Codegen/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fsdp/Codegen/Passes.h.inc"
} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_PASSES_H
