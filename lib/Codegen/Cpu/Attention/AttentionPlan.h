//===- AttentionPlan.h - How an attention kernel is blocked -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Sizes, tiles and scratch of one attention kernel: all numbers of the generated code
// are decided here. Blocks of keys follow from shapes and types alone, as bits depend
// on them.
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
  int64_t stride = 0; ///< of rows
};

struct Plan {
  Plan(const Shape &shape, const tile::Numbers &numbers) : shape(shape), numbers(numbers) {}

  Shape shape;
  tile::Numbers numbers;
  int64_t blockRows = 0, blockCols = 0; ///< of a tile of scores
  int64_t tileRows = 0;                 ///< in memory: fragments may be taller than what is left
  int64_t rowBlocks = 0, colBlocks = 0;
  int64_t workerBytes = 0, sharedBytes = 0;

  /// Steps along the head dimensions; elements of a row when it is padded.
  int64_t dimSteps() const { return numbers.steps(shape.dim); }
  int64_t valueSteps() const { return numbers.steps(shape.valueDim); }
  int64_t padded(int64_t cols) const { return llvm::alignTo(cols, numbers.rowLanes); }
  /// Rows of steps that transposing writes.
  int64_t transposedSteps(int64_t cols) const {
    return llvm::alignTo(cols, numbers.lanes * numbers.perStep()) / numbers.perStep();
  }
  /// `rows` rows of `stride` elements of `bytes` each.
  Part take(int64_t rows, int64_t stride, int64_t bytes);
  /// The offset of so many bytes that all workers share.
  int64_t takeShared(int64_t bytes);
};

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONPLAN_H
