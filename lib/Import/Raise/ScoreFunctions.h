//===- ScoreFunctions.h - A formula as functions of attention ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_SCOREFUNCTIONS_H
#define FSDP_LIB_IMPORT_SCOREFUNCTIONS_H

#include "Raise/AttentionMatch.h"
#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// A score of this or less is a masked one.
constexpr double masked = -1e4;

/// Whether score_mod may make scores as low as masked ones.
bool mayMask(AttentionOp op);
/// Whether the mask is one table of known bits, with a key in each of its rows.
bool isTableWithKeys(AttentionOp op);

/// What stands between the product of Q and K and the softmax, as scale, score_mod and mask_mod;
/// and what after it, as weight_mod.
class ScoreFunctions {
public:
  /// `indices`: the parts of b, h, i, j. `assumeKeys`: every row keeps a key, whatever masks it.
  ScoreFunctions(AttentionMatch &match, ArrayRef<SmallVector<unsigned>> indices, bool assumeKeys);

  /// The op with its functions; null with an obstacle when the formula holds something that a
  /// function cannot.
  AttentionOp build(OpBuilder &b, Value q, Value k, Value v, Obstacle &obstacle);

private:
  /// A scalar of a body, or an element of a tensor, at a place.
  using Key = std::pair<Value, AffineMap>;
  /// A condition under which the score counts, or (`negated`) does not.
  struct Mask {
    Point condition;
    bool negated;
  };
  class Writer;

  Key keyOf(const Point &point) const;
  Point settle(Point point);
  bool holdsScore(const Point &point);
  std::optional<double> constantOf(const Point &point);
  std::optional<unsigned> scoredOperand(const Point &point);
  void peelMasks();
  bool addMask(const Point &select, std::optional<unsigned> kept, double factor, const Point &outer,
               unsigned rest);
  void peelScale();
  bool write(AttentionOp op, Obstacle &obstacle);
  bool writeFactors(AttentionOp op, Obstacle &obstacle);

  AttentionMatch &m;
  SmallVector<SmallVector<unsigned>> indices;
  bool assumeKeys;
  double scale;
  SmallVector<Mask> masks;
  DenseMap<Key, bool> scored;
  /// Ops that are left out, and the operand that stands for each; the second: for masks of finite
  /// numbers.
  DenseMap<Key, unsigned> passed, passedFinite;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_SCOREFUNCTIONS_H
