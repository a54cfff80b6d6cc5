//===- LoopParts.h - Loops split into parts for views -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A position in a view is a function of loops. The position of the same element in the view's
// source may contain divisions: row d of a view [8, 5] of a tensor [4, 2, 5] is row (d / 2, d % 2)
// of the tensor. If the loop over d is split into parts, this position contains no division:
//
//   loop of 8 = parts (a, b) of 4 and 2, at 2·a + b
//   [8, 5] at (2·a + b, c)  =  [4, 2, 5] at (a, b, c)
//
// Each coordinate is then a sum of loop parts, each multiplied by a stride. If a view requires that
// a part is split further, throughReshape() sets `needed`. The caller then splits this part and
// starts again.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_LOOPPARTS_H
#define FSDP_LIB_IMPORT_LOOPPARTS_H

#include "Structure/Points.h"

namespace mlir::fsdp {

/// A set of loops, each of which is split into parts. In expressions, part p is the affine
/// dimension p.
class LoopParts {
public:
  explicit LoopParts(MLIRContext *context) : context(context) {}

  /// Returns the index of loop `loop` as an expression of its parts. If the loop is not in the set
  /// yet, adds it with one part of `extent` iterations.
  AffineExpr getLoop(unsigned loop, int64_t extent);
  /// Splits a part into an outer part and a new inner part of `inner` iterations.
  void split(unsigned part, int64_t inner);

  unsigned size() const { return extents.size(); }
  int64_t getExtent(unsigned part) const { return extents[part]; }

  struct Term {
    unsigned part;
    int64_t stride;
  };
  /// Returns the terms part · stride whose sum is a coordinate. The term with the largest stride
  /// comes first. Returns nothing unless the coordinate is such a sum and takes each value of [0,
  /// extent) exactly once.
  std::optional<SmallVector<Term>> termsOf(AffineExpr coordinate, int64_t extent) const;

  struct Split {
    unsigned part;
    int64_t inner;
  };
  /// If `point` is an element of the result of a reshape, returns the same element in the reshape's
  /// source. Returns nothing if `point` is not the result of an expand_shape or a collapse_shape.
  /// If a loop part must be split first, sets `needed` and returns nothing.
  std::optional<Point> throughReshape(const Point &point, std::optional<Split> &needed) const;

private:
  MLIRContext *context;
  SmallVector<int64_t> extents;             // number of iterations of each part
  SmallVector<SmallVector<unsigned>> loops; // parts of each loop, outermost first
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_LOOPPARTS_H
