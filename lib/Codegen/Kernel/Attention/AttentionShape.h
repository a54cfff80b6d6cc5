//===- AttentionShape.h - Sizes and bounds of attention kernels --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declarations that the lowerings of attention for CPUs and GPUs share.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONSHAPE_H
#define FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONSHAPE_H

#include "ScoreFunction.h"

namespace mlir::fsdp::attention {

inline constexpr double log2e = 0x1.71547652b82fep0, ln2 = 0x1.62e42fefa39efp-1;

/// Sizes of an attention op or its gradient.
struct Shape {
  int64_t batch, heads, kvHeads, group, rows, cols, dim, valueDim;
  SmallVector<int64_t> extents() const { return {batch, heads, rows, cols}; }
};
Shape getShape(RankedTensorType q, RankedTensorType k, RankedTensorType v);

/// Indices of the batch, the query head and the key/value head of a tile, as 64-bit scalars.
struct Head {
  Value batch, head, kvHead;
};

/// Returns a site with the batch and the head of `head` and with q = k = 0. Values that depend only
/// on b and h can be emitted at this site.
tile::Site siteOf(CodeBuilder &b, const Head &head);

/// Emits the members begin, fullBegin, fullEnd and end of `range` as 64-bit block numbers. If the
/// blocks of `range` consist of columns, [first, last) is the range of rows of a tile. If the
/// blocks consist of rows, [first, last) is the range of columns of a tile. `unit` contains the
/// emitted values of `mask` that depend only on b and h.
SmallVector<Value> emitBounds(CodeBuilder &b, const TileRange &range,
                              const tile::ScoreFunction &mask,
                              const tile::ScoreFunction::Values &unit, const Head &head,
                              Value first, Value last);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_KERNEL_ATTENTION_ATTENTIONSHAPE_H
