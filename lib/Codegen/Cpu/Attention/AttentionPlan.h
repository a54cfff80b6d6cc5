//===- AttentionPlan.h - Blocking of an attention kernel --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Describes the sizes, the tiles and the scratch of one attention kernel. The plan contains all
// sizes that the generated code uses. The size of blocks of keys depends only on shapes and types,
// because this size affects the bits of the result.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONPLAN_H
#define FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONPLAN_H

#include "Codegen/Kernel/Attention/AttentionShape.h"
#include "CpuTiles.h"

namespace mlir::fsdp::attention {

/// A part of a worker's scratch.
struct Part {
  int64_t offset = 0;
  int64_t stride = 0; ///< distance between rows, in elements
};

/// Largest number of rows and columns of a tile of scores. A tile of f32 scores has 32 KiB and thus
/// fits the L1 cache. The number of columns is a multiple of the number of rows. With a causal
/// mask, tiles then contain fewer masked scores.
static constexpr int64_t mostRows = 64, mostCols = 128;

struct Plan {
  Plan(const Shape &shape, const tile::Numbers &numbers) : shape(shape), numbers(numbers) {}

  Shape shape;
  tile::Numbers numbers;
  int64_t blockRows = 0, blockCols = 0; ///< size of a tile of scores
  int64_t tileRows = 0;                 ///< number of rows of a tile in memory
  int64_t rowBlocks = 0, colBlocks = 0;
  int64_t workerBytes = 0, sharedBytes = 0;
  // Configuration of the tile registers; this part is reserved only if a phase uses tile registers.
  Part tileConfig;

  /// Return the number of steps for the head dimension of Q and K (dimSteps()), and for the head
  /// dimension of V (valueSteps()).
  int64_t dimSteps() const { return numbers.steps(shape.dim); }
  int64_t valueSteps() const { return numbers.steps(shape.valueDim); }
  int64_t padded(int64_t cols) const { return llvm::alignTo(cols, numbers.rowLanes); }
  /// Returns the number of columns that a matrix with `cols` columns has after it was packed along
  /// rows: `cols` rounded up to whole steps of a product.
  int64_t paddedAlong(int64_t cols) const { return numbers.wholeSteps(padded(cols)); }
  /// Returns the number of rows that packTransposed() writes for `cols` columns: one row per step.
  int64_t transposedSteps(int64_t cols) const {
    return llvm::alignTo(cols, numbers.lanes * numbers.perStep()) / numbers.perStep();
  }
  /// Reserves space in a worker's scratch for `rows` rows of `stride` elements, each with `bytes`
  /// bytes.
  Part take(int64_t rows, int64_t stride, int64_t bytes);
  /// Reserves `bytes` bytes in the shared scratch. Returns the offset of the reserved bytes.
  int64_t takeShared(int64_t bytes);
};

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONPLAN_H
