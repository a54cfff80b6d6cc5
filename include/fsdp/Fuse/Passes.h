//===- Passes.h - Passes of the Fuse stage ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_FUSE_PASSES_H
#define FSDP_FUSE_PASSES_H

#include "fsdp/IR/FSDP.h"
#include "fsdp/Options/Defaults.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"

namespace mlir::fsdp {
#define GEN_PASS_DECL
#include "fsdp/Fuse/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fsdp/Fuse/Passes.h.inc"

class TargetInfo;
/// Creates a pass that also decomposes those attention ops for which `target` has no kernel. The
/// pass warns once for each reason why there is no kernel.
std::unique_ptr<Pass> createDecomposeNamedOpsPass(std::shared_ptr<const TargetInfo> target);

/// Creates a pass that joins only those dispatches whose sums the kernels of `target` can compute.
std::unique_ptr<Pass> createJoinFactorSumsPass(std::shared_ptr<const TargetInfo> target);

struct StepOptions;
/// Appends the passes: decompose, chunk, form dispatches, align rows, fold copies of heads, join
/// sums of factors, write in place, verify.
void buildFusePipeline(OpPassManager &pm, const StepOptions &options);

} // namespace mlir::fsdp

#endif // FSDP_FUSE_PASSES_H
