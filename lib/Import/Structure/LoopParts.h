//===- LoopParts.h - Loops in parts, so that views permute ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A place that is read through views needs divisions: element d of [8, 5] is element
// (d / 2, d % 2) of [4, 2, 5]. Where the loop is split into parts beforehand, it does not:
//
//   loop of 8 = parts (a, b) of 4 and 2, at 2·a + b
//   [8, 5] at (2·a + b, c)  =  [4, 2, 5] at (a, b, c)
//
// So each coordinate stays Σ stride · part. A view that needs a finer split says so; the
// one who reads begins again with it.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_LOOPPARTS_H
#define FSDP_LIB_IMPORT_LOOPPARTS_H

#include "Structure/Points.h"

namespace mlir::fsdp {

/// A dimension expression per part, numbered over all loops.
class LoopParts {
public:
  explicit LoopParts(MLIRContext *context) : context(context) {}

  /// The place of loop number `loop`, which has `extent` iterations: on first sight it is one part.
  AffineExpr getLoop(unsigned loop, int64_t extent);
  /// Splits a part so that its inner one has `inner` iterations.
  void split(unsigned part, int64_t inner);

  unsigned size() const { return extents.size(); }
  int64_t getExtent(unsigned part) const { return extents[part]; }

  struct Term {
    unsigned part;
    int64_t stride;
  };
  /// The terms of a coordinate, largest stride first; nothing when it is no sum of parts
  /// that covers [0, extent), each once.
  std::optional<SmallVector<Term>> termsOf(AffineExpr coordinate, int64_t extent) const;

  struct Split {
    unsigned part;
    int64_t inner;
  };
  /// The same element before an expand_shape or a collapse_shape. Nothing when
  /// it is not one of them, or when `needed` says which split helps.
  std::optional<Point> throughReshape(const Point &point, std::optional<Split> &needed) const;

private:
  MLIRContext *context;
  SmallVector<int64_t> extents;             // by part
  SmallVector<SmallVector<unsigned>> loops; // parts, outermost first
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_LOOPPARTS_H
