//===- HeadRewrite.cpp - Own parts of whole values --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %k = contract %x, %w       %e = reduce_cotangent %w          w: 2 heads of 16 rows, T = 4
//                              %h = expand_shape %e              2 x 16 rows
//                              %p = sum over j: j = %t div 2 ? %h[j] : 0
//                              %k = contract %x, %p              p: 16 rows
//
// Implements the parts of SplitRewrite.h for values that stay whole on the axis `tensor`, and of
// which a split op reads a part. The argument %t with `fsdp.key = "tensor"` contains the rank's
// coordinate. If several neighbours read copies of a part, as a head of keys, the number of the
// part is the quotient of the coordinate. The sum over all parts has one term that is not zero, so
// it is exact. Each rank computes a part of the cotangent of the whole value, so it is entered.
//
// O(size of the whole value). There is no own_piece over the axis `tensor`, because a slice of a
// buffer in an artifact depends on the axes `shard` and `replicate` only.
//
//===----------------------------------------------------------------------===//

#include "SplitRewrite.h"
#include "fsdp/IR/Decompositions.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the part of a whole value that this rank reads.
Value SplitRewrite::pick(Value whole, const TensorSplit &split) {
  Value value = enter(whole);
  Value &known = picks[{value, split.toAttribute(b.getContext())}];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(value);
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  int64_t parts = axis.countParts(split), count = split.blocks.size();
  // Give the blocks, if there are several, and the parts of a block dimensions of their own.
  SmallVector<int64_t> all, own;
  SmallVector<ReassociationIndices> toAll, toOwn;
  unsigned loop = split.dim + (count > 1);
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    SmallVector<int64_t> sizes{type.getDimSize(dim)};
    if (dim == split.dim)
      sizes = {count, parts, split.blocks.front() / parts};
    toAll.emplace_back();
    toOwn.emplace_back();
    for (auto [i, size] : llvm::enumerate(sizes)) {
      if (dim == split.dim && i == 0 && count == 1)
        continue;
      if (dim != split.dim || i != 1) {
        toOwn.back().push_back(own.size());
        own.push_back(size);
      }
      toAll.back().push_back(all.size());
      all.push_back(size);
    }
  }
  Value expanded = tensor::ExpandShapeOp::create(b, loc, type.clone(all), value, toAll);
  Value part = buildPick(b, expanded, type.clone(own), loop, split.copies, coordinate);
  if (count > 1)
    part = tensor::CollapseShapeOp::create(b, loc, part, toOwn);
  return known = part;
}
