//===- Points.h - One element, traced through generics ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The matchers of softmax and cross-entropy ask for the formula of one element,
// whichever way it is cut into generics:
//
//   y[d0, d1] = exp(x[d0, d1] - m[d0]) / s[d0]
//
// A Point is a scalar of a body, or an element of a tensor, with the place of
// everything around it in the dimensions of the root. Stepping through a parallel
// generic goes from an element to the scalar it yields; stepping through a block
// argument goes to the element that it reads. Dimensions that a reduction sums
// over are symbols.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_POINTS_H
#define FSDP_LIB_IMPORT_POINTS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace mlir::fsdp {

struct Point {
  Value value;                // a tensor, or a scalar of a body
  SmallVector<AffineExpr> at; // per dimension of the tensor, or per loop of the body

  bool isTensor() const { return isa<RankedTensorType>(value.getType()); }

  /// The op that computes this scalar; null at a leaf.
  template <typename OpTy>
  OpTy op() const {
    return isTensor() ? OpTy() : value.getDefiningOp<OpTy>();
  }
};

/// One step of `settle`; nothing at a scalar op, a constant, a leaf tensor, or a view that merges
/// or splits dimensions.
std::optional<Point> step(const Point &point);

/// Loops of an op whose result is read at `at`, by the result's map; none when not determined.
/// Loops that the result does not depend on stay null.
std::optional<SmallVector<AffineExpr>> loopsAt(AffineMap map, ArrayRef<AffineExpr> at);

/// The place of a map's results when its dimensions are at `at`.
SmallVector<AffineExpr> place(AffineMap map, ArrayRef<AffineExpr> at);

/// After copies and bodies, down to a scalar op, a constant or a leaf tensor
/// (argument, reduction, contraction, ...).
Point settle(Point point);

/// From a block argument to the element that it reads; anything else stays.
Point readElement(Point point);

/// Operand `i` of the scalar op at a point, not settled.
Point operandOf(const Point &point, unsigned i);

/// Both are the same formula.
bool equal(const Point &a, const Point &b, unsigned depth = 0);

/// A constant, however it is written.
std::optional<double> constantAt(const Point &point);

/// An element of a reduction: what is combined, with a new symbol per reduced loop.
struct Reduction {
  enum Kind { Sum, Max } kind;
  Point term;
  SmallVector<AffineExpr> symbols;
  linalg::GenericOp op;
};
std::optional<Reduction> matchReduction(const Point &point, Reduction::Kind kind);

/// Replaces one symbol or dimension everywhere in a point's place.
Point substitute(Point point, AffineExpr from, AffineExpr to);

/// Whether the formula at `point` involves `expr`.
bool dependsOn(const Point &point, AffineExpr expr, unsigned depth = 0);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_POINTS_H
