//===- GemmPlan.h - Blocking of a contraction -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Describes the types, the register tile, the blocks for the caches and the scratch of one
// contraction kernel. The plan contains all sizes that the generated code uses.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_GEMM_GEMMPLAN_H
#define FSDP_LIB_CODEGEN_CPU_GEMM_GEMMPLAN_H

#include "Codegen/Cpu/Amx/AmxTiles.h"
#include "Codegen/Kernel/CacheLine.h"
#include "Codegen/Kernel/Gemm/GemmProblem.h"
#include "fsdp/Codegen/CpuTarget.h"

namespace mlir::fsdp::gemm {

/// The ways in which products are computed and summed.
enum class Arithmetic {
  Fma, ///< one fused multiply-add per value of k
  /// The instruction vdpbf16ps on pairs of values of k. The instruction first adds the product at
  /// the odd k of a pair, then the product at the even k.
  Bf16Dot,
  Bf16Pairs, ///< fused multiply-adds of widened values, in the order in which Bf16Dot adds
  /// tdpbf16ps on tiles of 16 rows, 16 columns and 32 values of k (Cpu/Amx). Operands of type f32
  /// are sums of three bf16.
  Tiles
};

using amx::tileSize;

/// Maximum number of micro-kernels per panel of rhs of which each prefetches a part of the next
/// panel in every iteration.
static constexpr int64_t maxTilesBeside = 24;

struct Plan {
  Type accType;  ///< type of the accumulators: f32 or f64
  Type packType; ///< type of the elements of packed panels: bf16 if packsPairs(), otherwise accType
  Arithmetic arithmetic = Arithmetic::Fma;
  /// Number of packed elements whose sum is one element of an operand (amx::Product::slices).
  int64_t slices = 1;

  /// True if loops with the arithmetic of tdpbf16ps are emitted instead of the instruction.
  bool emulatesTiles = false;

  // Size of the register tile: mr rows and nr = nv · lanes columns.
  int64_t lanes = 0, mr = 0, nv = 0, nr = 0;

  // The digits `rows` together form one index, and so do the digits `cols`. Within a tile, only the
  // innermost digit of `rows` and the innermost digit of `cols` change. The index k consists of the
  // digits `kOuter` and the digit `kInner`. `outer` contains all other digits (see GemmProblem.h).
  SmallVector<int> rows, cols, outer, kOuter;
  int kInner = -1;
  int64_t m = 1, n = 1, k = 1, outerCount = 1, kOuterCount = 1;

  // Blocks: mc × kc of lhs and kc × nr of rhs are packed at a time. nc limits the number of columns
  // whose partial sums are kept in scratch.
  int64_t mc = 0, nc = 0, kc = 0, kBlocks = 1;
  int64_t colGroup = 1; ///< number of panels of rhs that are packed before the loop over rows
  /// Number of adjacent panels of columns whose results are stored together, row by row.
  int64_t strip = 1;
  int64_t kSlab = 0; ///< number of values of k per micro-kernel, at most kc

  /// True if the sums are kept directly in the result's buffer.
  bool direct = false;

  /// True if a result is written with streaming stores (isStreamed()).
  bool streams = false;

  /// True if micro-kernels prefetch the next panel of rhs.
  bool prefetchesRhs = false;
  /// Number of parts of the loop of a micro-kernel. With several parts, lines of the result and of
  /// rhs are prefetched at the beginning of each part.
  int64_t parts = 1;
  /// True if micro-kernels prefetch the next panel of lhs.
  bool prefetchesLhs = false;
  /// True if a panel of lhs is packed just before its first use. Otherwise a block of lhs is packed
  /// as a whole.
  bool packsLhsOnUse = false;
  int64_t lhsPanelsPerUse = 1; ///< number of panels that are then packed together

  // If `splitRows` is true, the rows are divided among workers in units of mr rows. Otherwise the
  // columns of each block of mc rows are divided in units of nr columns.
  bool splitRows = false;
  int64_t rowBlocks = 1;     ///< number of blocks of rows whose columns are divided
  int64_t unitsPerBlock = 1; ///< number of units of a block or, if splitRows is true, of all rows

  // Scratch of a worker, in bytes.
  int64_t lhsOffset = 0, rhsOffset = 0, tileOffset = 0, workerBytes = 0;
  int64_t configOffset = 0; ///< offset of the tile registers' configuration

  /// Returns true if a strip is finished beside the products of the next strip (see Gemm.cpp).
  bool finishesBeside() const { return arithmetic == Arithmetic::Tiles && !direct; }
  /// Returns the number of columns of a strip.
  int64_t stripCols() const { return strip * nr; }
  /// Strips that are finished beside products are finished in chunks of four vectors of a row.
  int64_t chunkCols() const { return std::min(4 * lanes, stripCols()); }
  int64_t chunksPerStrip() const { return mr * stripCols() / chunkCols(); }
  /// Returns the number of chunks per iteration of the products, that is, per 32 values of k.
  int64_t chunksPerTurn() const {
    return llvm::divideCeil(chunksPerStrip(), strip * kSteps(kc) / tileSize);
  }
  int64_t extent() const { return outerCount * rowBlocks * unitsPerBlock; }
  /// Returns the number of steps of the micro-kernel for `k` values of k.
  int64_t kSteps(int64_t k) const;
  /// Returns the number of k values per step.
  int64_t kPerStep() const { return packsPairs() ? 2 : 1; }
  /// Returns true if a step is a pair of bf16.
  bool packsPairs() const {
    return arithmetic == Arithmetic::Bf16Dot || arithmetic == Arithmetic::Tiles;
  }
  /// Returns the bytes that a slice of a panel has for one step of one row (or column).
  int64_t stepBytes() const;
  /// Returns the size of a slice of a panel. The unit is one step of one row. The steps are rounded
  /// up to whole vectors, and one vector is added, because packing stores whole vectors.
  int64_t sliceSize(int64_t width) const {
    return llvm::alignTo(kSteps(kc), lanes) * width + lanes;
  }
  /// Returns the size of a panel. Its slices are one after another.
  int64_t panelSize(int64_t width) const { return slices * sliceSize(width); }
  /// Returns the number of panels that one vector along the rows fills. The last of these panels
  /// may be after the end of the matrix.
  int64_t panelsPerVector(int64_t width) const {
    return width < lanes && 4 * width >= lanes && lanes % width == 0 ? lanes / width : 1;
  }
  int64_t panelBytes(int64_t width) const { return panelSize(width) * stepBytes(); }
};

/// Returns true if the epilogue stores a result with streaming stores, which do not read the lines
/// of the result from memory first. Only kernels with tile registers do this, and only for large
/// results in which the distance between rows is a multiple of a cache line, and chunks consist of
/// whole cache lines. The kernel must not read the buffer of the result.
bool isStreamed(const Problem &problem, const Plan &plan, const StoreStep &store);

/// Chooses the side of the product that becomes the columns (contiguous in the result if possible),
/// and plans the blocks. Fails if an element type is unsupported.
FailureOr<Plan> makePlan(Problem &problem, const CpuTarget &target);

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_CPU_GEMM_GEMMPLAN_H
