//===- OrderLoops.cpp - Innermost loops over results ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Orders the loops of sums of products, so that the innermost loop is over the last dimension of
// the result instead of over the terms of one sum.
//
//   for i, j, k: c[i, j] += a[i, k] * b[k, j]     before: each addition waits for its predecessor
//   for i, k, j: c[i, j] += a[i, k] * b[k, j]     after: LLVM adds to several elements at once
//
// The terms of each sum keep their order, so that results have the same bits. Linear in the number
// of ops. Sums of one tensor are not changed: they would read it in steps of whole rows.
//
//===----------------------------------------------------------------------===//

#include "OrderLoops.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Moves the loop over the last dimension of the result of `op` inside the loops of its sums.
static void moveResultLoopInside(IRRewriter &rewriter, linalg::GenericOp op) {
  if (op.getNumDpsInputs() < 2 || op.getNumDpsInits() != 1 || !op.getNumReductionLoops())
    return;
  AffineMap result = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!result.isProjectedPermutation() || result.getNumResults() == 0)
    return;
  unsigned last = result.getDimPosition(result.getNumResults() - 1);
  SmallVector<unsigned> order, sums;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (linalg::isReductionIterator(kind))
      sums.push_back(loop);
    else if (loop != last)
      order.push_back(loop);
  order.append(sums);
  order.push_back(last);
  rewriter.setInsertionPoint(op);
  (void)linalg::interchangeGenericOp(rewriter, op, order);
}

int64_t fsdp::orderLoops(func::FuncOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  int64_t iterations = 0;
  SmallVector<linalg::LinalgOp> ops;
  kernel.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
  for (linalg::LinalgOp op : ops) {
    if (SmallVector<int64_t> ranges = op.getStaticLoopRanges(); ShapedType::isStaticShape(ranges))
      iterations += ShapedType::getNumElements(ranges);
    auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
    rewriter.setInsertionPoint(op);
    if (!generic)
      if (auto made = linalg::generalizeNamedOp(rewriter, op); succeeded(made))
        generic = *made;
    if (generic)
      moveResultLoopInside(rewriter, generic);
  }
  return iterations;
}
