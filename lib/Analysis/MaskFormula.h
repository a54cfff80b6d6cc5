//===- MaskFormula.h - A mask as compares of integers -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_ANALYSIS_MASKFORMULA_H
#define FSDP_LIB_ANALYSIS_MASKFORMULA_H

#include "fsdp/Analysis/AttentionTiles.h"
#include <vector>

namespace mlir::fsdp {

/// A boolean function of b, h, q, k: conditions `atom >= 0`, joined by and, or. An atom is over
/// Row, Column, Batch and Head, without minima, maxima and choices outside of divisions.
struct MaskFormula {
  enum Kind { True, False, Unknown, Atom, And, Or } kind;
  TileExpr atom;
  std::vector<MaskFormula> parts = {};
  /// Of what is unknown: the boolean, and whether its opposite is meant.
  Value source = {};
  bool negated = false;

  static MaskFormula of(bool value) { return {value ? True : False, {}}; }
  static MaskFormula unknown() { return {Unknown, {}}; }
  static MaskFormula join(Kind kind, MaskFormula a, MaskFormula b);
};

/// Reads one function of attention.
class MaskReader {
public:
  /// Extents of b, h, q, k.
  MaskReader(Region &function, ArrayRef<int64_t> extents);

  /// A boolean of the region, or its opposite.
  MaskFormula read(Value condition, bool negated = false);
  /// An integer of the region; null when it may wrap. Opaque where nothing but the range is known.
  TileExpr readInteger(Value value);

  const RegionDependence &getDependence() const { return dependence; }

private:
  MaskFormula readOp(Value condition, bool negated);
  MaskFormula compare(arith::CmpIPredicate predicate, Value lhs, Value rhs);
  MaskFormula compare(arith::CmpIPredicate predicate, TileExpr lhs, TileExpr rhs);
  /// atom >= 0
  MaskFormula isNatural(TileExpr atom);
  TileExpr compute(Value value);
  TileExpr leaf(Value value, IntegerRange range);

  Region &function;
  RegionDependence dependence;
  SmallVector<TileExpr> position; // b, h, q, k
  DenseMap<Value, TileExpr> known;
  unsigned budget = 512; // parts of a formula; what is longer is unknown
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_ANALYSIS_MASKFORMULA_H
