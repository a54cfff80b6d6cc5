//===- Points.h - The formula of one element across generics ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The matchers of softmax, cross-entropy and attention need the formula of one element, which may
// be divided into any number of generics:
//
//   y[d0, d1] = exp(x[d0, d1] - m[d0]) / s[d0]
//
// A Point is a scalar of a body or an element of a tensor. Its position (loop indices or tensor
// indices) is an affine function of the indices of the root, which is the element whose formula is
// read. A step leads from an element of a parallel generic to the scalar that the generic yields.
// From a block argument, a step leads to the element that the argument holds. Affine symbols stand
// for the loops of a reduction.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_POINTS_H
#define FSDP_LIB_IMPORT_POINTS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace mlir::fsdp {

struct Point {
  Value value;                // tensor, or scalar of a body
  SmallVector<AffineExpr> at; // index in each dimension of the tensor, or in each loop of the body

  bool isTensor() const { return isa<RankedTensorType>(value.getType()); }

  /// Returns the op that computes this scalar if the op is an OpTy. Returns null otherwise.
  template <typename OpTy>
  OpTy op() const {
    return isTensor() ? OpTy() : value.getDefiningOp<OpTy>();
  }
};

/// Makes one step from a point towards its definition. Returns nothing for the result of a scalar
/// op, a constant, an element of a leaf tensor, and an element of a view that merges or splits
/// dimensions. The function settle() repeats this step.
std::optional<Point> step(const Point &point);

/// Returns the loop indices at which an op computes the element `at` of a result, where `map` is
/// the indexing map of this result. The index of a loop that is not in the map is null. Returns
/// nothing unless the map's results are distinct dimensions.
std::optional<SmallVector<AffineExpr>> loopsAt(AffineMap map, ArrayRef<AffineExpr> at);

/// Evaluates `map` at the loop indices `at`.
SmallVector<AffineExpr> place(AffineMap map, ArrayRef<AffineExpr> at);

/// Follows a point back through copies and bodies to a scalar op, a constant or a leaf tensor
/// (argument, reduction, contraction, ...).
Point settle(Point point);

/// Returns the element of an operand that a block argument holds. Else returns the point itself.
Point readElement(Point point);

/// Returns operand `i` of the scalar op at a point, without a call of settle() for the operand.
Point operandOf(const Point &point, unsigned i);

/// Returns whether two points provably have the same formula.
bool equal(const Point &a, const Point &b, unsigned depth = 0);

/// Returns the value at a point if this value is a constant. The point may be a scalar constant, an
/// element of a splat constant, or an element of the result of a linalg.fill.
std::optional<double> constantAt(const Point &point);

/// An element of a sum or maximum over loops. `term` is the value that is summed or compared. The
/// position of `term` contains one affine symbol for each loop of the reduction.
struct Reduction {
  enum Kind { Sum, Max } kind;
  Point term;
  SmallVector<AffineExpr> symbols;
  linalg::GenericOp op;
};
/// Matches an element of the result of a reduction whose initial value is neutral.
std::optional<Reduction> matchReduction(const Point &point, Reduction::Kind kind);

/// Returns `point` with the affine symbol or dimension `from` in its position replaced by `to`.
Point substitute(Point point, AffineExpr from, AffineExpr to);

/// Returns whether the formula at `point` may depend on `expr`.
bool dependsOn(const Point &point, AffineExpr expr, unsigned depth = 0);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_POINTS_H
