//===- MaskFormula.h - A mask as comparisons of integers --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_ANALYSIS_MASKFORMULA_H
#define FSDP_LIB_ANALYSIS_MASKFORMULA_H

#include "fsdp/Analysis/AttentionTiles.h"
#include <vector>

namespace mlir::fsdp {

/// A boolean function of b, h, q and k. It consists of conditions `atom >= 0` that are combined by
/// `and` and `or`. An atom is a tree over Row, Column, Batch and Head. An atom contains minima,
/// maxima and choices only as operands of divisions.
struct MaskFormula {
  enum Kind { True, False, Unknown, Atom, And, Or } kind;
  TileExpr atom;
  std::vector<MaskFormula> parts = {};
  /// If the kind is Unknown, `source` is the boolean value of the region that the formula
  /// represents, and `negated` is true if the formula is the negation of this value.
  Value source = {};
  bool negated = false;

  static MaskFormula of(bool value) { return {value ? True : False, {}}; }
  static MaskFormula unknown() { return {Unknown, {}}; }
  static MaskFormula join(Kind kind, MaskFormula a, MaskFormula b);
};

/// Converts booleans of one attention function to formulas, and integers to trees.
class MaskReader {
public:
  /// `extents` are the extents of b, h, q, k.
  MaskReader(Region &function, ArrayRef<int64_t> extents);

  /// Returns the formula of the boolean value `condition` of the region. If `negated` is true,
  /// returns the formula of its negation.
  MaskFormula read(Value condition, bool negated = false);
  /// Returns the tree of an integer of the region. If the computation may wrap or is not supported,
  /// the tree is a scalar or opaque leaf. Returns null if `value` is not an integer.
  TileExpr readInteger(Value value);

  const RegionDependence &getDependence() const { return dependence; }

private:
  MaskFormula readOp(Value condition, bool negated);
  MaskFormula compare(arith::CmpIPredicate predicate, Value lhs, Value rhs);
  MaskFormula compare(arith::CmpIPredicate predicate, TileExpr lhs, TileExpr rhs);
  /// Returns the formula of `atom >= 0`.
  MaskFormula isNatural(TileExpr atom);
  TileExpr compute(Value value);
  TileExpr leaf(Value value, IntegerRange range);

  Region &function;
  RegionDependence dependence;
  SmallVector<TileExpr> position; // trees of b, h, q and k
  DenseMap<Value, TileExpr> known;
  unsigned budget = 512; // number of conditions that may be added before the result is Unknown
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_ANALYSIS_MASKFORMULA_H
