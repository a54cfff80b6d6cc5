//===- ScoreFunctions.h - Regions of attention from a formula ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_SCOREFUNCTIONS_H
#define FSDP_LIB_IMPORT_SCOREFUNCTIONS_H

#include "Raise/AttentionMatch.h"
#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// Scores of at most this value count as masked.
constexpr double masked = -1e4;

/// Returns whether score_mod may yield finite scores of at most `masked`.
bool mayMask(AttentionOp op);
/// A constant table that is added to scores as a mask.
enum class MaskTable { None, Infinite, Finite };
/// Returns None unless `table` times `factor` has only elements that are 0 or at most `masked`, at
/// least one of them not 0. Returns Finite if a masked element is finite; else Infinite.
MaskTable classifyTable(Value table, double factor);
/// Returns a constant of i1 that is true where `table` is 0. classifyTable must not return None.
DenseElementsAttr keptElements(Value table);
/// Returns whether mask_mod keeps a key in every row, by evaluating it row by row. Returns false if
/// mask_mod reads data other than constant tables, or after too many evaluations.
bool keepsKeyInEveryRow(AttentionOp op);

/// Writes the formula between Q·Kᵀ and the softmax as scale, score_mod and mask_mod, and the
/// factors after the softmax as weight_mod.
class ScoreFunctions {
public:
  /// `indices` are the loop parts of b, h, i, j. `assumeKeys` asserts that every row keeps a key.
  ScoreFunctions(AttentionMatch &match, ArrayRef<SmallVector<unsigned>> indices, bool assumeKeys);

  /// Builds the op with its regions. Returns null and sets `obstacle` if the formula contains an op
  /// that a region must not.
  AttentionOp build(OpBuilder &b, Value q, Value k, Value v, Obstacle &obstacle);

private:
  /// A scalar of a body, or an element of a tensor, and its position in terms of loop parts.
  using Key = std::pair<Value, AffineMap>;
  /// A condition that keeps the score or, if `negated`, masks the score; or an element of a table,
  /// which keeps the score if the element is 0.
  struct Mask {
    Point condition;
    bool negated = false, isNumber = false;
  };
  class Writer;

  Key keyOf(const Point &point) const;
  Point settle(Point point);
  bool holdsScore(const Point &point);
  std::optional<double> constantOf(const Point &point);
  std::optional<unsigned> scoredOperand(const Point &point);
  std::optional<std::pair<unsigned, double>> lowerBound(const Point &point);
  void peelMasks();
  bool addMask(const Point &select, std::optional<unsigned> kept, double factor, const Point &outer,
               unsigned rest);
  bool addTable(const Point &table, double factor, const Point &outer, unsigned rest);
  void peelScale();
  bool write(AttentionOp op, Obstacle &obstacle);
  bool isSinkAllowed(AttentionOp op, Obstacle &obstacle);
  bool writeFactors(AttentionOp op, Obstacle &obstacle);

  AttentionMatch &m;
  SmallVector<SmallVector<unsigned>> indices;
  bool assumeKeys;
  double scale;
  SmallVector<Mask> masks;
  /// Cache of holdsScore.
  DenseMap<Key, bool> scored;
  /// Ops that score_mod omits, and the operand that replaces each. `passedFinite` contains those
  /// ops that mask with finite numbers.
  DenseMap<Key, unsigned> passed, passedFinite;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_SCOREFUNCTIONS_H
