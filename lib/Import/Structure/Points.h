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
// indices) is an affine function of the indices of the element whose formula is read, the root. A
// step leads from an element of a parallel generic to the scalar that the generic yields, and from
// a block argument to the element that it reads. Affine symbols stand for the loops of a reduction.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_POINTS_H
#define FSDP_LIB_IMPORT_POINTS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace mlir::fsdp {

struct Point {
  Value value;                // tensor, or scalar of a body
  SmallVector<AffineExpr> at; // index of each dimension, or of each loop of the body

  bool isTensor() const { return isa<RankedTensorType>(value.getType()); }

  /// Returns the op that computes this scalar if the op is an OpTy; else null.
  template <typename OpTy>
  OpTy op() const {
    return isTensor() ? OpTy() : value.getDefiningOp<OpTy>();
  }
};

/// Makes one step of `settle` towards the definition of a point. Returns nothing at a scalar op, a
/// constant, a leaf tensor, or a view that merges or splits dimensions.
std::optional<Point> step(const Point &point);

/// Returns the loop indices at which an op computes the element `at` of its result, whose map is
/// `map`. The index of a loop that is not in the map is null. Returns nothing unless the map's
/// results are distinct dimensions.
std::optional<SmallVector<AffineExpr>> loopsAt(AffineMap map, ArrayRef<AffineExpr> at);

/// Applies a map to the loop indices `at`.
SmallVector<AffineExpr> place(AffineMap map, ArrayRef<AffineExpr> at);

/// Follows a point back through copies and bodies to a scalar op, a constant or a leaf tensor
/// (argument, reduction, contraction, ...).
Point settle(Point point);

/// Returns the element that a block argument reads, or `point` itself if it is no block argument.
Point readElement(Point point);

/// Returns operand `i` of the scalar op at a point, without settling it.
Point operandOf(const Point &point, unsigned i);

/// Returns whether two points provably have the same formula.
bool equal(const Point &a, const Point &b, unsigned depth = 0);

/// Returns the value at a point if it is a constant, as a scalar, a splat or a fill.
std::optional<double> constantAt(const Point &point);

/// An element of a sum or maximum over loops: the reduced term, with one symbol per reduced loop.
struct Reduction {
  enum Kind { Sum, Max } kind;
  Point term;
  SmallVector<AffineExpr> symbols;
  linalg::GenericOp op;
};
/// Matches an element of a reduction with a neutral initial value.
std::optional<Reduction> matchReduction(const Point &point, Reduction::Kind kind);

/// Replaces an affine symbol or dimension in the position of a point.
Point substitute(Point point, AffineExpr from, AffineExpr to);

/// Returns whether the formula at `point` may depend on `expr`.
bool dependsOn(const Point &point, AffineExpr expr, unsigned depth = 0);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_POINTS_H
