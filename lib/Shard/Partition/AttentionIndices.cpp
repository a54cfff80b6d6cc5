//===- AttentionIndices.cpp - Indices of split attention --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   mask_mod(%b, %h, %i, %j)         ->    mask_mod(%b, %h, %i, %j, %c)
//     .. %h ..                               %head = %h + (%c[] mod T) · heads
//                                            .. %head ..
//
// Lets the functions of attention read heads (axis `tensor`) or rows of queries (axis `context`) by
// their index in the whole model. Of c, the coordinate of the rank, and n, the size that a rank
// has, index i becomes i + c · n or, of stripes over C ranks, i · C + c. The argument of the
// function with `fsdp.key = "tensor"` or "context" contains c.
//
// Learned tables that the functions read stay whole. Each rank computes a part of their gradients.
//
//===----------------------------------------------------------------------===//

#include "SplitRewrite.h"
#include "fsdp/IR/Decompositions.h"

using namespace mlir;
using namespace mlir::fsdp;

bool SplitRewrite::needsCoordinate() const {
  if (axis.rows)
    return readsPieces();
  return axis.isContext() || !group.sliced.empty() || llvm::any_of(group.ops, [](auto &entry) {
           auto &[op, splits] = entry;
           auto attention = dyn_cast<AttentionOp>(op);
           return isa<CrossEntropyOp>(op) || (isa<GatherRowsOp>(op) && splits.partial) ||
                  (attention && readsIndex(attention, splits.results[0]->dim));
         });
}

/// Adds the argument that contains the coordinate of the rank.
void SplitRewrite::addCoordinate() {
  for (BlockArgument argument : func.getArguments())
    if (auto key = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), FSDPDialect::keyAttr);
        key && key.getValue() == axis.name) {
      coordinate = argument;
      return;
    }
  unsigned index = func.getNumArguments();
  auto mark = b.getNamedAttr(FSDPDialect::keyAttr, b.getStringAttr(axis.name));
  (void)func.insertArgument(index, RankedTensorType::get({}, b.getI64Type()),
                            b.getDictionaryAttr(mark), func.getLoc());
  coordinate = func.getArgument(index);
}

/// Lets the functions of attention read the index of dimension `dim`, which is split, in the whole
/// dimension.
void SplitRewrite::shiftIndices(AttentionOp op, int64_t dim) {
  // The functions of a ring also need the coordinate to count keys (ExpandRing.cpp).
  if (!readsIndex(op, dim) && !(op.getRing() && readsIndex(op, 3)))
    return;
  int64_t size = cast<RankedTensorType>(op.getQ().getType()).getDimSize(dim);
  op->insertOperands(op->getNumOperands(), coordinate);
  std::pair<Region *, int64_t> functions[] = {
      {&op.getScoreMod(), 1 + dim}, {&op.getMaskMod(), dim}, {&op.getWeightMod(), dim}};
  for (auto [region, argument] : functions) {
    if (region->empty())
      continue;
    Block &body = region->front();
    BlockArgument part = body.addArgument(coordinate.getType(), op.getLoc());
    countInWhole(op.getLoc(), body.getArgument(argument), part, axis.ranks, size, axis.striped);
  }
}
