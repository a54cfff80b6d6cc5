//===- IntegerRange.h - Ranges of integers ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines ranges of integers. They describe the possible ids of lookups, values in attention
// functions, values in mask formulas, and subscripts in kernels. MLIR's InferIntRangeInterface
// computes the ranges of the results of arith ops.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_INTEGERRANGE_H
#define FSDP_ANALYSIS_INTEGERRANGE_H

#include "mlir/IR/Operation.h"
#include <algorithm>
#include <cstdint>
#include <limits>

namespace mlir::fsdp {

/// All integers from `lo` to `hi`, by default all values of int64_t. The integers are signed,
/// except that a value of type i1 is 0 or 1.
struct IntegerRange {
  int64_t lo = std::numeric_limits<int64_t>::min();
  int64_t hi = std::numeric_limits<int64_t>::max();

  static IntegerRange of(int64_t value) { return {value, value}; }
  /// Returns the range of indices into a dimension of size `extent`: [0, extent - 1], or [0, 0] if
  /// the extent is 0.
  static IntegerRange below(int64_t extent) { return {0, std::max<int64_t>(extent - 1, 0)}; }
  /// Returns the range of all values that `type` (or the elements of `type`) can have.
  static IntegerRange ofType(Type type);

  bool isSingle() const { return lo == hi; }
  bool within(int64_t first, int64_t last) const { return lo >= first && hi <= last; }
  bool within(IntegerRange other) const { return within(other.lo, other.hi); }
};

/// Returns the smallest range that contains `a` and `b`.
inline IntegerRange join(IntegerRange a, IntegerRange b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}
/// Return the range of the sum or of the product, computed without wrapping. Return the range of
/// all int64_t values if a bound of the result does not fit 64 bits.
IntegerRange operator+(IntegerRange a, IntegerRange b);
IntegerRange operator*(IntegerRange a, IntegerRange b);

/// Returns the range of the result of `op`. Computes this range by MLIR's rules from the ranges of
/// the operands (`operands`). The rules take into account that integers wrap. Returns the range of
/// the result type if `op` has no rule. Ignores the ranges of float operands.
IntegerRange inferResultRange(Operation *op, ArrayRef<IntegerRange> operands);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_INTEGERRANGE_H
