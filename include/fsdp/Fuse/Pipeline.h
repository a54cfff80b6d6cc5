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

namespace mlir {
class Operation;
class OpPassManager;
namespace fsdp {
/// Of intermediate results that can be computed a few rows at a time.
struct ChunkLimits {
  int64_t maxBytes; ///< 0: no limit
  int64_t minRows;  ///< also where these are more bytes
};
/// A CPU's: what a core's cache nearly holds; with 16 rows a contraction's kernel has something to
/// reuse.
constexpr ChunkLimits cpuChunks = {32 << 20, 16};
/// A chunk of R rows reads a bf16 weight [V, H] twice, and reads and writes its gradient in f32, 12
/// V H bytes, for 6 R V H operations. A GPU does about 300 of these for a byte (H100: 990 T/s, 3.35
/// TB/s), so that 2048 rows have 3.5 times the operations that these bytes hide behind.
constexpr ChunkLimits gpuChunks = {256 << 20, 2048};

struct FuseOptions {
  std::optional<ChunkLimits> chunks; ///< `--max-chunk-bytes`; nothing: a CPU's
  int64_t rowAlignment = 0;          ///< bytes at whose multiples rows of factors begin; 0: any
  bool remarks = false;
  bool fuseAttention = true; ///< attention is a kernel of its own, its scores never whole in memory
  /// Whether the target has a kernel for an attention, or for gradients of one; says itself why
  /// not. The scores are whole in memory then. Functions may ask at once. Empty: it has kernels for
  /// all of them.
  std::function<bool(Operation *)> hasAttentionKernel;
};

/// Appends the stage: decompose, chunk, group into dispatches, align, write in place, verify.
void buildFusePipeline(OpPassManager &pm, const FuseOptions &options);
} // namespace fsdp
} // namespace mlir

#endif // FSDP_FUSE_PIPELINE_H
