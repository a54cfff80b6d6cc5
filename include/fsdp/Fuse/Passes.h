//===- Passes.h - Passes of the Fuse stage ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_FUSE_PASSES_H
#define FSDP_FUSE_PASSES_H

#include "fsdp/Fuse/Pipeline.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"

namespace mlir::fsdp {
#define GEN_PASS_DECL
#include "fsdp/Fuse/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fsdp/Fuse/Passes.h.inc"

/// With `hasAttentionKernel` too, which no text can give.
std::unique_ptr<Pass> createDecomposeNamedOpsPass(const FuseOptions &options);
} // namespace mlir::fsdp

#endif // FSDP_FUSE_PASSES_H
