//===- GpuGemm.h - Contractions on a GPU ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMM_H
#define FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMM_H

#include "Codegen/Gpu/Ptx/GpuBuilder.h"
#include "Codegen/Kernel/Gemm/GemmShared.h"
#include "fsdp/Analysis/Gpu/PartOrder.h"
#include "fsdp/Codegen/Gpu/GpuImage.h"
#include <array>

namespace mlir::fsdp::gemm {

/// The tiling of a block of threads. The block computes `blockRows` x `blockCols` elements of the
/// result, and each warp of the block computes `warpRows` x `warpCols` of these elements. Factors
/// are loaded into `stages` buffers, `blockK` values of k at a time.
struct GpuConfig {
  int64_t blockRows, blockCols, blockK;
  int64_t warpRows, warpCols;
  int64_t stages;
  int64_t blocksPerSm;     ///< number of blocks that must fit a multiprocessor together
  bool warpgroups = false; ///< true if the kernel uses wgmma on tiles that tensor maps copy
  int64_t cluster = 1;     ///< number of blocks per cluster; they share tiles of rhs

  int64_t warps() const { return blockRows / warpRows * (blockCols / warpCols); }
  int64_t threads() const { return 32 * warps(); }
};

/// The tile of a factor in shared memory. If `alongK` is true, each row of the tile holds
/// contiguous values of k for one row (or column) of the result. Otherwise each row of the tile
/// holds contiguous rows (or columns) of the result for one value of k.
struct GpuSide {
  SmallVector<int> digits; ///< digits of the rows (or columns) of the result
  int64_t size = 1;        ///< product of the sizes of `digits`
  int64_t width = 0;       ///< number of rows (or columns) of the result in a tile
  bool alongK = true;
  int64_t unit = 1;   ///< number of contiguous elements that one copy transfers
  bool async = false; ///< true if cp.async copies the factor, without conversion
  /// Size of the tile (rows, bytes per row, bytes). `offset` is its offset in a stage, in bytes.
  int64_t tileRows = 0, rowBytes = 0, bytes = 0, offset = 0;
};

/// A copy of an f32 factor in scratch. Its elements along k are contiguous, because wgmma reads
/// TF32 factors only along k. Launches before the product make the copies (GpuGemmPacks.cpp).
struct PackedFactor {
  Operand operand; ///< its binding is the scratch
  int64_t bytes;   ///< a multiple of 256
};

/// The plan of a contraction kernel. The plan contains all sizes that the kernel's code uses.
struct GpuPlan {
  std::string chip;
  Type element; ///< type of the factors in shared memory: bf16, f16 or f32
  F32Products f32Products = F32Products::Exact;
  GpuConfig config;
  GpuSide lhs, rhs;
  SmallVector<int> outer, kOuter;
  int kInner = -1;
  /// The member `kBlocks` is the number of tiles of k, over all digits of k.
  int64_t outerCount = 1, k = 1, kBlocks = 1;
  int64_t multiprocessors = 1;
  /// Copies of lhs and of rhs, which plans with wgmma use instead of the factors.
  std::array<std::optional<PackedFactor>, 2> packed;
  /// Number of parts of k, whose sums a second launch adds in order. If `uneven` is present, it
  /// divides k, and `splits` is the largest number of parts of a tile.
  int64_t splits = 1;
  std::optional<PartOrder> uneven;
  /// The summed factor, or null. Of its tiles of k, `sumShares` blocks with different tiles of the
  /// other factor add one after the other in turn.
  const GpuSide *summed() const { return !sums ? nullptr : sumsLhs ? &lhs : &rhs; }
  bool sums = false, sumsLhs = false;
  int64_t sumShares = 1;
  int64_t storeCols = 1; ///< number of contiguous elements of a row of the result that one thread
                         ///< computes

  /// Return sizes and counts of the tiles of the result. Here, the blocks of a cluster together
  /// compute one tile.
  int64_t tileRows() const { return config.blockRows * config.cluster; }
  int64_t rowTiles() const { return llvm::divideCeil(lhs.size, tileRows()); }
  int64_t colTiles() const { return llvm::divideCeil(rhs.size, config.blockCols); }
  int64_t resultTiles() const { return outerCount * rowTiles() * colTiles(); }
  int64_t tiles() const { return resultTiles() * splits; }
  int64_t blocks() const { return (uneven ? uneven->blocks() : tiles()) * config.cluster; }
  /// Returns the number of parts of k of all tiles of the result together.
  int64_t allParts() const { return uneven ? uneven->allParts() : tiles(); }
  /// Returns the number of tiles of k in each part, if all parts are equal.
  int64_t partBlocks() const { return kBlocks / splits; }
  /// Returns the number of tiles of the factor that is not summed. Each block of a cluster has a
  /// tile of lhs.
  int64_t otherTiles() const { return sumsLhs ? colTiles() : rowTiles() * config.cluster; }
  /// Returns the bytes of a stage: both tiles and, if wgmma multiplies high and low parts of f32
  /// factors, the low parts of rhs.
  int64_t stageBytes() const { return copiedBytes() + (splitsTiles() ? rhs.bytes : 0); }
  int64_t copiedBytes() const { return lhs.bytes + rhs.bytes; }
  /// Returns the number of barriers of a stage with wgmma: full, empty, and split if it is.
  int64_t barriersPerStage() const { return splitsTiles() ? 3 : 2; }
  /// Returns the distance between rows of sums in shared memory, in bytes: an odd multiple of 32.
  int64_t sumsPitch() const { return config.blockCols * 4 + 32; }
  int64_t sharedBytes() const;
  /// Returns the number of elements of the sum of a factor, over all of its shares.
  int64_t sumElements() const { return summed() ? sumShares * summed()->size : 0; }
  /// Returns true if each f32 factor is split into a high and a low part.
  bool isSplit() const { return element.isF32() && f32Products == F32Products::Exact; }
  bool splitsTiles() const { return config.warpgroups && isSplit(); }
  /// Return the sizes of the parts of the scratch: copies of factors, then sums of parts of k.
  int64_t packedBytes() const;
  int64_t partBytes() const {
    return splits > 1 ? splits * (outerCount * lhs.size * rhs.size + sumElements()) * 4 : 0;
  }
  int64_t scratchBytes() const { return packedBytes() + partBytes(); }
  /// Return the factors that the kernel reads: copies, or those of the problem.
  const Operand &lhsOf(const Problem &problem) const { return factor(0, problem.lhs); }
  const Operand &rhsOf(const Problem &problem) const { return factor(1, problem.rhs); }

private:
  const Operand &factor(unsigned number, const Operand &own) const {
    return config.warpgroups && packed[number] ? packed[number]->operand : own;
  }
};

/// Each warpgroup has memory for sums: `groupBytes` bytes of shared memory. The warpgroup writes
/// `groupCols` columns of sums at a time. The distance between rows of sums is `groupPitch` bytes.
/// The memory holds either f32 sums with padded rows, or two panels of results: one panel is stored
/// while the other is written.
inline constexpr int64_t groupCols = 32, groupPitch = groupCols * 4 + 32, groupBytes = 2 * 64 * 128;
static_assert(groupBytes >= 64 * groupPitch);
/// Bytes of shared memory for the sum of a factor: an f32 for each column of the widest tile. And
/// the largest number of blocks that share the tiles of k of a sum.
inline constexpr int64_t factorSumBytes = 256 * 4, mostSumShares = 4;
/// If a thread executes at most this number of copies per factor, the addresses of the copies are
/// kept in registers.
inline constexpr int64_t maxUnrolledCopies = 8;
/// The name of a kernel's attribute that selects the tile of a contraction, for tuning and tests.
/// Its value is "128x64", or "128x64/4" for k in four parts. "wg128x64/2+9" asks for two equal
/// parts of nine tiles of k; the remaining blocks divide the remaining tiles of k among them.
inline constexpr StringLiteral gemmTileAttr = "fsdp.gemm_tile";

/// Returns how many contiguous elements of a row of the result one aligned access to `operand` can
/// transfer: at most storeCols elements and 16 bytes.
int64_t alignedColumns(const Problem &problem, const GpuPlan &plan, const Operand &operand);
/// Returns the cost of a plan's launch, and of the launch that adds the sums of parts.
GpuCost costOf(const Problem &problem, const GpuPlan &plan);
GpuCost costOfPartSums(const Problem &problem, const GpuPlan &plan);
/// Returns the cost of the launch that copies a packed factor.
GpuCost costOfPack(const GpuPlan &plan, const PackedFactor &packed);
/// Returns how many tiles of k take as long as the epilogue of a tile, for plans with wgmma.
double epilogueSteps(const Problem &problem, const GpuPlan &plan);
/// Threads per block, and blocks, of the launch that adds the sums of parts.
inline constexpr int64_t sumThreads = 256;
int64_t sumBlocks(const GpuPlan &plan);
/// Returns an estimate of the number of registers per thread that a plan needs.
int64_t estimateRegisters(const GpuPlan &plan);

/// Chooses the factor that provides the columns of the result, and plans the kernel. On failure,
/// sets `reason` to the property that is not supported.
FailureOr<GpuPlan> makeGpuPlan(Problem &problem, func::FuncOp kernel, const GpuTarget &target,
                               std::string &reason);

/// Plans copies of those factors that wgmma cannot read as TF32. Returns the reason why a factor
/// cannot be copied, or an empty text. Then neither factor is copied.
std::string planPacks(const Problem &problem, func::FuncOp kernel, GpuPlan &plan);
/// Threads per block, and blocks, of the launch that copies a factor.
inline constexpr int64_t packThreads = 256;
int64_t packBlocks(const Problem &problem, const GpuPlan &plan, unsigned number);
/// Adds the launches that copy factors.
void addPacks(func::FuncOp kernel, const Problem &problem, const GpuPlan &plan, ModuleOp entries,
              GpuKernel &info);

/// Returns the first row and column of tile `number` of the result. Tiles are ordered in groups of
/// eight rows of tiles. Within a group, they are ordered column by column. With this order, blocks
/// that run at the same time read the same rows and columns from the L2 cache.
std::pair<Value, Value> emitTile(GpuBuilder &b, const GpuPlan &plan, Value number);
/// Returns the number of the tile that contains an element of the result.
Value emitTileNumber(GpuBuilder &b, const GpuPlan &plan, Value row, Value col);

/// Returns the tensor maps of lhs and rhs. Returns nothing if the plan does not use warpgroups, or
/// if tensor maps cannot copy the factors.
std::optional<std::array<GpuTensorMap, 2>> makeTensorMaps(const Problem &problem,
                                                          const GpuPlan &plan);
/// A tensor whose elements at a tile of the result the epilogue reads or stores in boxes. The
/// elements of 64 columns are one box of 16-bit elements, or two boxes of f32.
struct EpilogueBox {
  const Operand *operand;
  GpuTensorMap map;
  bool isWide; ///< true for f32
  int64_t boxes() const { return isWide ? 2 : 1; }
};
struct EpilogueBoxes {
  SmallVector<EpilogueBox, 2> loads, stores;

  int64_t loadsPerPanel() const { return countBoxes(loads); }
  int64_t storesPerPanel() const { return countBoxes(stores); }
  /// Returns how many boxes are written between two barriers. With several results, both buffers
  /// are written together, as a panel takes longer to compute than its boxes to store.
  int64_t storesTogether() const { return stores.size() > 1 ? 2 : 1; }
  /// A box of a load has all rows of the tile. Returns how many of these boxes fit a stage, and
  /// over how many stages the boxes of a tile extend.
  static int64_t loadsPerStage(const GpuPlan &plan);
  int64_t stages(const GpuPlan &plan) const;

private:
  static int64_t countBoxes(ArrayRef<EpilogueBox> tensors);
};
/// Returns true if all elements of the operand at a tile of the result are in one row, or in one
/// column.
bool isVector(const GpuPlan &plan, const Operand &operand);
/// Returns the tensors that the epilogue reads and stores in boxes. Returns nothing if k is split,
/// if tensor maps cannot copy a result or a load that is not a vector, or if the epilogue reads
/// boxes and is so long that registers would be spilled.
std::optional<EpilogueBoxes> makeEpilogueBoxes(const Problem &problem, const GpuPlan &plan);
/// Emits the kernel with mma.sync.
void lowerSm80Gemm(func::FuncOp kernel, const Problem &problem, const GpuPlan &plan,
                   ModuleOp entries, GpuKernel &info);
/// Emits the kernel with wgmma.
void lowerSm90Gemm(func::FuncOp kernel, const Problem &problem, const GpuPlan &plan,
                   std::array<GpuTensorMap, 2> maps, ModuleOp entries, GpuKernel &info);

/// Returns the reason why no plan with wgmma fits f32 factors that are rounded to TF32.
std::string whyNoWarpgroups(const Problem &problem, func::FuncOp kernel, const GpuPlan &plan,
                            const GpuTarget &target);

/// Returns the reason why this contraction has no GPU kernel, or nothing if there is a GPU kernel.
std::optional<std::string> whyNoGpuGemm(func::FuncOp kernel, const GpuTarget &target);
/// Returns true if the kernel is a contraction without an epilogue and the sum of a factor, and one
/// launch can compute both.
bool sumsFactor(func::FuncOp kernel, const GpuTarget &target);
LogicalResult lowerGpuGemm(func::FuncOp kernel, const GpuTarget &target, ModuleOp entries,
                           GpuKernel &info);

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMM_H
