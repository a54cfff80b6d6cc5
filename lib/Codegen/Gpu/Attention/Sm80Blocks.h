//===- Sm80Blocks.h - Block traversal shared by the attention kernels --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80BLOCKS_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80BLOCKS_H

#include "Codegen/Kernel/Attention/AttentionKernel.h"
#include "Sm80Attention.h"

namespace mlir::fsdp::attention {

/// A run of consecutive blocks: [begin, end). If end <= begin, the run is empty.
struct BlockRun {
  Value begin, end;
  Value length(GpuBuilder &b) const { return b.max(b.sub(end, begin), b.i32(0)); }
};
/// Concatenates the runs to one sequence of blocks, and returns the number of the block at position
/// `turn` of this sequence. Returns 0 if there are no runs.
Value emitBlockAt(GpuBuilder &b, ArrayRef<BlockRun> runs, Value turn);
/// Emits the bounds begin, fullBegin, fullEnd and end of `range` for the rows or columns [first,
/// last), as 32-bit numbers of blocks.
std::array<Value, 4> emitBlockBounds(GpuBuilder &b, const TileRange &range,
                                     const FragmentFunction &mask, const Head &head, Value first,
                                     Value last);

/// The sequence of blocks of keys that a block of queries visits, or of blocks of queries that a
/// block of keys visits.
class BlockSequence {
public:
  /// Creates the sequence for the rows or columns [first, last), given as 32-bit integers.
  BlockSequence(GpuBuilder &b, ArrayRef<TileRange> ranges, const FragmentFunction &mask,
                const Head &head, Value first, Value last);

  Value count; ///< number of blocks

  /// Returns the number of the block at position `turn` of the sequence.
  Value at(Value turn) const;
  /// Returns true if the sequence contains `block`.
  Value contains(Value block) const;
  /// Returns true if no element of `block` is masked.
  Value isFree(Value block) const;

private:
  GpuBuilder &b;
  // The runs of visited blocks (`all`), and the runs of those visited blocks that contain no masked
  // element (`full`). Both contain one run for each range.
  SmallVector<BlockRun> all, full;
};

/// Returns the buffer that iteration `turn` uses. `tile` consists of two buffers with `rows` rows
/// each, which the iterations use alternately.
tile::SharedTile stageOf(GpuBuilder &b, const tile::SharedTile &tile, int64_t rows, Value turn);
/// Returns the `rows` rows of a tile that belong to this warp.
tile::SharedTile rowsOfWarp(GpuBuilder &b, const tile::SharedTile &tile, int64_t rows);

/// A [batch, heads, rows, cols] tensor in memory, and the distances between its elements. If the
/// kernel does not return the tensor, the base of `place` is null.
struct HeadTensor {
  Pointer place; ///< address of the first element
  RankedTensorType type;
  HeadLayout layout;

  /// Returns the offset of a row. The heads of all batches are counted in `head`, or in each batch.
  Value offsetOf(GpuBuilder &b, Value batch, Value head) const;
  Value offsetOf(GpuBuilder &b, Value head) const;
};
/// Returns an operand or a result of the kernel's attention op.
HeadTensor headTensorOf(const GpuBuilder &b, func::FuncOp kernel, Value heads);
/// Returns the matrix [rows, cols] of one head.
tile::GlobalRows slabOf(GpuBuilder &b, const HeadTensor &tensor, Value batch, Value head);

/// Multiplies each row of a fragment by the factor of this row (by 1 if the factor is null). Then
/// stores those rows that exist in the matrix. `numbers` are the indices of this lane's rows.
void storeRows(GpuBuilder &b, const tile::Fragment &fragment, ArrayRef<Value> numbers,
               ArrayRef<Value> factors, const tile::GlobalRows &to);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80BLOCKS_H
