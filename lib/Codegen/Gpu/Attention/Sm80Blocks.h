//===- Sm80Blocks.h - What the attention kernels of a GPU share -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80BLOCKS_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80BLOCKS_H

#include "Sm80Attention.h"

namespace mlir::fsdp::attention {

/// Blocks [begin, end); none where it ends before it begins.
struct BlockRun {
  Value begin, end;
  Value length(GpuBuilder &b) const { return b.max(b.sub(end, begin), b.i32(0)); }
};
/// The number of the block that comes `turn`-th in runs, one after another; 0 when there are
/// none.
Value emitBlockAt(GpuBuilder &b, ArrayRef<BlockRun> runs, Value turn);
/// begin, fullBegin, fullEnd and end of a range for [first, last), as numbers of blocks; all of 32
/// bits.
std::array<Value, 4> emitBlockBounds(GpuBuilder &b, const TileRange &range,
                                     const FragmentFunction &mask, const Head &head, Value first,
                                     Value last);

/// The blocks of the other side that a block meets, one after the other.
class BlockSequence {
public:
  /// For [first, last), 32-bit numbers.
  BlockSequence(GpuBuilder &b, ArrayRef<TileRange> ranges, const FragmentFunction &mask,
                const Head &head, Value first, Value last);

  Value count; ///< of blocks
  /// The number of the block that comes `turn`-th.
  Value at(Value turn) const;
  /// Whether this block is one of them.
  Value contains(Value block) const;
  /// Whether nothing of a block is masked.
  Value isFree(Value block) const;

private:
  GpuBuilder &b;
  SmallVector<BlockRun> all, full; ///< of each range
};

/// A tile with two buffers of `rows` rows: the one of a turn.
tile::SharedTile stageOf(GpuBuilder &b, const tile::SharedTile &tile, int64_t rows, Value turn);
/// The rows of this warp.
tile::SharedTile rowsOfWarp(GpuBuilder &b, const tile::SharedTile &tile, int64_t rows);

/// The matrix [rows, cols] of a head in a [batch, heads, rows, cols] tensor.
tile::GlobalRows slabOf(GpuBuilder &b, const Pointer &tensor, Value batch, Value head,
                        int64_t heads, int64_t rows, int64_t cols);

/// Writes the rows of a fragment, times a factor each, to a matrix: those that exist. `numbers`: of
/// the rows of this lane.
void storeRows(GpuBuilder &b, const tile::Fragment &fragment, ArrayRef<Value> numbers,
               ArrayRef<Value> factors, const tile::GlobalRows &to);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80BLOCKS_H
