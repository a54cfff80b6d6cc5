//===- GpuGemm.h - Contractions on a GPU ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMM_H
#define FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMM_H

#include "Codegen/Gpu/Ptx/GpuBuilder.h"
#include "Codegen/Kernel/Gemm/GemmShared.h"
#include "fsdp/Codegen/Gpu/GpuImage.h"

namespace mlir::fsdp::gemm {

/// How a block of threads cuts its tile: `blockRows` x `blockCols` of the result, of which a warp
/// has `warpRows` x `warpCols`; `blockK` of the factors at a time, in `stages` buffers.
struct GpuConfig {
  int64_t blockRows, blockCols, blockK;
  int64_t warpRows, warpCols;
  int64_t stages;
  int64_t blocksPerSm;     ///< that are to fit
  bool warpgroups = false; ///< wgmma on tiles from tensor maps
  int64_t cluster = 1;     ///< blocks, one below the other, that share the tiles of rhs

  int64_t warps() const { return blockRows / warpRows * (blockCols / warpCols); }
  int64_t threads() const { return 32 * warps(); }
};

/// A factor's tile in shared memory: either its rows are rows (columns) of the result with
/// neighbours along k, or they are those of k with neighbours along the result.
struct GpuSide {
  SmallVector<int> digits; ///< what rows (columns) of the result count through
  int64_t size = 1;        ///< of those
  int64_t width = 0;       ///< rows (columns) of the result in a tile
  bool alongK = true;
  int64_t unit = 1;   ///< neighbours that are copied at a time
  bool async = false; ///< copied as they are, by cp.async
  int64_t tileRows = 0, rowBytes = 0, bytes = 0, offset = 0; ///< of the tile, within a stage
};

/// All numbers of the kernel's code.
struct GpuPlan {
  Type element; ///< of the factors in shared memory: bf16, f16, or f32
  GpuConfig config;
  GpuSide lhs, rhs;
  SmallVector<int> outer, kOuter;
  int kInner = -1;
  int64_t outerCount = 1, k = 1, kBlocks = 1; ///< kBlocks: tiles of k, over all its digits
  int64_t multiprocessors = 1;
  int64_t splits = 1;    ///< parts of k whose sums are added in order by a launch of their own
  int64_t storeCols = 1; ///< neighbours in a row of the result that one thread finishes

  /// Of the result; a cluster has a tile of its own for each block, counted as one.
  int64_t tileRows() const { return config.blockRows * config.cluster; }
  int64_t rowTiles() const { return llvm::divideCeil(lhs.size, tileRows()); }
  int64_t colTiles() const { return llvm::divideCeil(rhs.size, config.blockCols); }
  int64_t tiles() const { return outerCount * splits * rowTiles() * colTiles(); }
  int64_t blocks() const { return tiles() * config.cluster; }
  /// Tiles of k of a part, where parts are equal.
  int64_t partBlocks() const { return kBlocks / splits; }
  int64_t stageBytes() const { return lhs.bytes + rhs.bytes; }
  /// Between rows of sums that wait to be stored; an odd number of 32 bytes.
  int64_t sumsPitch() const { return config.blockCols * 4 + 32; }
  int64_t sharedBytes() const;
  int64_t scratchBytes() const {
    return splits > 1 ? splits * outerCount * lhs.size * rhs.size * 4 : 0;
  }
};

/// Columns of sums that a warpgroup sends through shared memory at a time, and what it takes: of
/// f32, with some bytes between rows, or twice a panel of results, one of which is stored while the
/// other is written.
inline constexpr int64_t groupCols = 32, groupPitch = groupCols * 4 + 32, groupBytes = 2 * 64 * 128;
static_assert(groupBytes >= 64 * groupPitch);
/// Copies of a side that a thread has at most where each has registers of its own.
inline constexpr int64_t maxUnrolledCopies = 8;
/// Names the tile of a contraction, for tuning and tests: "128x64", or with k in four parts
/// "128x64/4".
inline constexpr StringLiteral gemmTileAttr = "fsdp.gemm_tile";

/// Neighbours in a row of the result, at most storeCols and 16 bytes, that an operand has aligned
/// to their size.
int64_t alignedColumns(const Problem &problem, const GpuPlan &plan, const Operand &operand);
/// What a configuration is expected to take, as a thread's registers.
int64_t estimateRegisters(const GpuPlan &plan);

/// Orients the problem and decides everything; why not, when there is no code for it.
FailureOr<GpuPlan> makeGpuPlan(Problem &problem, func::FuncOp kernel, const GpuTarget &target,
                               std::string &reason);

/// First row and column of tile `number` of the result: groups of eight rows of tiles, in each
/// column by column, so that blocks that run at the same time share rows and columns in the
/// second-level cache.
std::pair<Value, Value> emitTile(GpuBuilder &b, const GpuPlan &plan, Value number);

/// Whether the factors can be copied by tensor maps, and the plan is for warpgroups of sm_90a; then
/// those of lhs and rhs.
std::optional<std::array<GpuTensorMap, 2>> makeTensorMaps(const Problem &problem,
                                                          const GpuPlan &plan);
/// A map of the result where there is but one, of the factors' type, whose operations load nothing
/// that depends on the row: then boxes of 64 x 64 of it are stored.
std::optional<GpuTensorMap> makeResultMap(const Problem &problem, const GpuPlan &plan);
/// Writes the kernel by mma.
void lowerSm80Gemm(func::FuncOp kernel, const Problem &problem, const GpuPlan &plan,
                   ModuleOp entries, GpuKernel &info);
/// Writes the kernel for warpgroups.
void lowerSm90Gemm(func::FuncOp kernel, const Problem &problem, const GpuPlan &plan,
                   std::array<GpuTensorMap, 2> maps, ModuleOp entries, GpuKernel &info);

/// Why there is no GPU kernel of this contraction.
std::optional<std::string> whyNoGpuGemm(func::FuncOp kernel, const GpuTarget &target);
LogicalResult lowerGpuGemm(func::FuncOp kernel, const GpuTarget &target, ModuleOp entries,
                           GpuKernel &info);

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMM_H
