//===- IdRanges.h - Range analysis of integers in a model -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_IDRANGES_H
#define FSDP_LIB_IMPORT_IDRANGES_H

#include "fsdp/Analysis/IntegerRange.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace mlir::fsdp {

/// A union of a few intervals, in ascending order, without overlap.
using IdSet = SmallVector<IntegerRange, 4>;

/// Computes the ranges of integer and index values. The attribute `fsdp.limit` gives the range of
/// an argument, and the extent of a loop gives the range of its index. From these ranges, computes
/// the ranges of the results of bodies, views and elementwise ops.
class IdRanges {
public:
  /// Returns an interval that contains a scalar, or all elements of a tensor.
  IntegerRange get(Value value);

  /// Returns the range as a union of intervals. For labels padded with -100, for example, the union
  /// consists of [-100, -100] and [0, limit).
  IdSet getSet(Value value);

  /// Assumes that every element of an argument is in [0, limit), or in `interval`.
  void assume(BlockArgument arg, int64_t limit) { assume(arg, {0, limit - 1}); }
  void assume(BlockArgument arg, IntegerRange interval) {
    limits[arg] = interval;
    clear();
  }

  /// Drops the assumption about an argument, so that its `fsdp.limit` applies again.
  void forget(BlockArgument arg) {
    limits.erase(arg);
    clear();
  }

  /// Returns whether the value is an element of a function argument, or results from such an
  /// element only by adding constants and multiplying by constants. Looks through selects, minima
  /// and maxima whose result the assumed ranges determine.
  bool followsArgument(Value value);

  /// Collects the integer arguments of the function that a value depends on.
  static void collectIdArguments(Value value, llvm::SmallPtrSetImpl<void *> &seen,
                                 SmallVectorImpl<BlockArgument> &arguments);

private:
  IntegerRange compute(Value value);
  IntegerRange computeResult(Operation *op, unsigned result);
  IntegerRange computeReduction(linalg::GenericOp op, unsigned result);
  IdSet computeSet(Value value);
  IdSet computeSelect(arith::SelectOp op);
  void clear() {
    known.clear();
    sets.clear();
  }
  void clearBody(linalg::GenericOp op);

  llvm::DenseMap<Value, IntegerRange> limits;
  llvm::DenseMap<Value, IntegerRange> known;
  llvm::DenseMap<Value, IdSet> sets;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_IDRANGES_H
