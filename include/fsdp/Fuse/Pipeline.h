//===- Pipeline.h - The Fuse stage ------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_FUSE_PIPELINE_H
#define FSDP_FUSE_PIPELINE_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace mlir {
class Operation;
class OpPassManager;
namespace fsdp {
struct FuseOptions {
  /// `--max-chunk-bytes`: of intermediate results that can be computed a few rows at a time; 0: no limit.
  int64_t maxChunkBytes = 32 << 20;
  bool remarks = false;
  bool fuseAttention = true; ///< attention is a kernel of its own, its scores never whole in memory
  /// Why the target has no kernel for an attention, or for gradients of one: its scores are whole in memory then, and a warning says why.
  /// Empty: it has kernels for all of them.
  std::function<std::optional<std::string>(Operation *)> whyNoAttentionKernel;
};

/// Appends the stage: decompose, chunk, group into dispatches, write in place, verify.
void buildFusePipeline(OpPassManager &pm, const FuseOptions &options);
} // namespace fsdp
} // namespace mlir

#endif // FSDP_FUSE_PIPELINE_H
