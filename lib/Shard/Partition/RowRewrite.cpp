//===- RowRewrite.cpp - Rows of values between split products ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %o = all_reduce %p           16 x 32      %r = flat_reduce_scatter %p        8 rows of 16
//   %s = %x + %o                              %s = %x + %r                       8 x 32
//   %n = norm %s, %g                          %n = norm %s, reduce_cotangent %g
//   %e = reduce_cotangent %n                  %e = all_gather %n                 16 x 32
//
//  1. Give the ops on rows the shape of the rows of a rank (SplitRewrite.cpp). They read the piece
//     of the rank of a whole value with rows. Another whole value, such as a weight, is entered:
//     each rank computes a part of its cotangent.
//  2. Replace the sums of the region by reduce-scatters. The rows of a rank have the terms and the
//     order of terms that they have in an all-reduce.
//  3. Replace each reduce_cotangent of rows by an all-gather. An op that stays whole reads the same
//     gathered rows. All ranks compute its cotangent, so each of them contributes 1/T of it.
//
// O(uses of rows).
//
//===----------------------------------------------------------------------===//

#include "RowSeeds.h"
#include "SplitRewrite.h"
#include "fsdp/IR/StopGradient.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns true if an op on rows reads its piece of a whole value.
bool SplitRewrite::readsPieces() const {
  return llvm::any_of(group.ops, [&](auto &entry) {
    return llvm::any_of(llvm::zip_equal(entry.first->getOperands(), entry.second.operands),
                        [&](auto pair) {
                          auto [operand, split] = pair;
                          return split && !isUniform(operand) && group.isSliced(operand);
                        });
  });
}

Value SplitRewrite::scatterRows(Value partial, const TensorSplit &split) {
  b.setInsertionPointAfterValue(partial);
  return cut(partial, split, [&](RankedTensorType piece, Value flat) -> Value {
    return FlatReduceScatterOp::create(b, partial.getLoc(), piece, flat, getMesh(), getAxes(),
                                       ReductionKindAttr::get(b.getContext(), ReductionKind::sum));
  });
}

Value SplitRewrite::shareRows(Value whole) {
  b.setInsertionPointAfterValue(whole);
  return ShareCotangentOp::create(b, whole.getLoc(), whole.getType(), whole, getMesh(), getAxes());
}

/// Lets the readers of a value that are not computed on rows read the rows of all ranks.
static void gatherUses(SplitRewrite &rewrite, Value rows, const TensorSplit &split,
                       ArrayRef<WholeUse> wholeUses) {
  SmallVector<ReduceCotangentOp> entries;
  for (Operation *user : rows.getUsers())
    if (isOverTensor<ReduceCotangentOp>(user))
      entries.push_back(cast<ReduceCotangentOp>(user));
  if (entries.empty() && wholeUses.empty())
    return;
  Value all = rewrite.gatherRows(rows, split), shared;
  for (ReduceCotangentOp entry : entries) {
    entry.getResult().replaceAllUsesWith(all);
    entry.erase();
  }
  for (auto [use, isSplit] : wholeUses) {
    if (!isSplit && !shared)
      shared = rewrite.shareRows(all);
    use->set(isSplit ? all : shared);
  }
}

void fsdp::splitRows(func::FuncOp func, const RowRegion &region) {
  SplitRewrite rewrite(func, region.group);
  rewrite.run();
  DenseMap<Value, SmallVector<WholeUse>> wholeUses;
  for (const WholeUse &use : region.wholeUses)
    wholeUses[use.use->get()].push_back(use);
  for (auto &[value, split] : region.group.splits) {
    Value rows = value;
    auto sum = value.getDefiningOp<AllReduceOp>();
    if (sum) {
      rows = rewrite.scatterRows(sum.getInput(), split);
      sum.getResult().replaceAllUsesWith(rows);
      sum.erase();
    }
    gatherUses(rewrite, rows, split, wholeUses.lookup(value));
  }
}
