//===- Pipeline.h - The Fuse stage ------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_FUSE_PIPELINE_H
#define FSDP_FUSE_PIPELINE_H

namespace mlir {
class OpPassManager;
namespace fsdp {
struct FuseOptions {};

/// Appends the stage: decompose, group into dispatches, write in place, verify.
void buildFusePipeline(OpPassManager &pm, const FuseOptions &options);
} // namespace fsdp
} // namespace mlir

#endif // FSDP_FUSE_PIPELINE_H
