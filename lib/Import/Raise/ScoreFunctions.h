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

/// A score that is less than or equal to this value counts as masked.
constexpr double masked = -1e4;

/// Returns whether score_mod may yield finite scores of at most `masked`.
bool mayMask(AttentionOp op);
/// Describes a constant table that is added to scores. None means that it masks no scores. Infinite
/// means that it masks scores by -inf, and Finite means that it masks them by finite numbers.
enum class MaskTable { None, Infinite, Finite };
/// Returns None if `table` is not constant, if all its elements are 0, or if an element times
/// `factor` is neither 0 nor at most `masked`. Else returns Finite if a finite element is not 0,
/// and Infinite if not.
MaskTable classifyTable(Value table, double factor);
/// Returns a constant of i1 that is true where `table` is 0. The result of classifyTable() for
/// `table` must not be None.
DenseElementsAttr keptElements(Value table);
/// Evaluates mask_mod row by row, and returns whether it keeps at least one key in every row.
/// Returns false if this cannot be decided, because mask_mod depends on data that is not constant,
/// or because too many evaluations would be needed.
bool keepsKeyInEveryRow(AttentionOp op);

/// Writes the formula between Q·Kᵀ and the softmax as scale, score_mod and mask_mod, and the
/// factors after the softmax as weight_mod.
class ScoreFunctions {
public:
  /// `indices` contains the loop parts of each of the indices b, h, i and j. `assumeKeys` asserts
  /// that every row keeps a key.
  ScoreFunctions(AttentionMatch &match, ArrayRef<SmallVector<unsigned>> indices, bool assumeKeys);

  /// Builds the attention op with its regions. Returns null and sets `obstacle` if the formula
  /// contains an op that a region must not contain.
  AttentionOp build(OpBuilder &b, Value q, Value k, Value v, Obstacle &obstacle);

private:
  /// A scalar of a body, or an element of a tensor, and its position in terms of loop parts.
  using Key = std::pair<Value, AffineMap>;
  /// A condition of mask_mod. If `isNumber`, `condition` is an element of a table, and the mask
  /// keeps the score if this element is 0. Otherwise `condition` is an i1. The mask then keeps the
  /// score if the i1 is true or, with `negated`, if the i1 is false.
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
  /// Ops that score_mod omits. Each is mapped to the number of the operand that replaces the op.
  /// `passedFinite` contains those ops that mask with finite numbers.
  DenseMap<Key, unsigned> passed, passedFinite;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_SCOREFUNCTIONS_H
