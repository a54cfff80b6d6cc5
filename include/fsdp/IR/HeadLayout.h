//===- HeadLayout.h - Tensors of heads inside other tensors -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A model computes projections as [batch, rows, heads, cols], and attention works on [batch, heads,
// rows, cols]. These declarations say where the elements of a tensor of heads lie in the tensor of
// a projection.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_HEADLAYOUT_H
#define FSDP_IR_HEADLAYOUT_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

/// The place of a [batch, heads, rows, cols] tensor in another tensor: the offset of the first
/// element, and the distances between batches, heads and rows, in elements. The elements of a row
/// are contiguous.
struct HeadLayout {
  int64_t offset, batch, head, row;

  /// Returns true if the elements are those of a contiguous tensor of type `type`.
  bool isContiguous(RankedTensorType type) const;
  /// Returns true if the offset and all distances are multiples of `bytes`.
  bool isAligned(RankedTensorType type, int64_t bytes) const;
  bool operator==(const HeadLayout &other) const;
};

/// Returns true if the op moves elements, or creates an empty tensor to move elements to: a
/// permutation, a reshape, a slice, an insertion or a concatenation.
bool isMoveOfElements(Operation *op);

/// A tensor of heads, and the tensor in which it lies.
struct PlacedHeads {
  Value heads, in;
  HeadLayout layout;
};
/// Follows the moves from which `heads` results to their source.
std::optional<PlacedHeads> findSource(Value heads);
/// Follows the moves from which `result` results to their sources, and returns the place of each
/// source in `result`. Returns nothing if a source is no tensor of heads, or if two overlap. If no
/// op moves, `result` is the only source, of any rank.
std::optional<SmallVector<PlacedHeads>> findPieces(Value result);

/// Returns the tensors of heads that an attention op or its gradient reads from arguments of its
/// block (q, k, v and, for a gradient, o and dO) and those that the block yields, in this order.
/// Returns nothing if an op of the block computes, or if offsets or distances of a tensor that is
/// not contiguous are no multiples of `bytes`.
std::optional<SmallVector<PlacedHeads>> findHeads(Operation *attention, int64_t bytes);
/// Returns the operands of an attention op or its gradient that are tensors of heads.
SmallVector<OpOperand *> getHeadOperands(Operation *attention);

} // namespace mlir::fsdp

#endif // FSDP_IR_HEADLAYOUT_H
