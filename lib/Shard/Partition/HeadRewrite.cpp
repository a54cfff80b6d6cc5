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
// O(size of the whole value).
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
  return known = buildOwnPart(b, value, split, axis.countParts(split), coordinate);
}
