//===- LossTerms.h - Matching of cross-entropy terms ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_LOSSTERMS_H
#define FSDP_LIB_IMPORT_LOSSTERMS_H

#include "Structure/Points.h"
#include <optional>

namespace mlir::fsdp {

/// A loss of the form `factor` · Σ -log p(target), where the sum is over rows.
struct Loss {
  Point logits; // element of the logits, whose last coordinate is the class
  Point target;
  double factor = 1;
  std::optional<int64_t> ignore; // value of the target for which a row contributes 0
  SmallVector<AffineExpr> rows;  // affine symbols of the loops over rows
};

/// Reads `term`, which a model sums over the loops `symbols`, as the term of a loss. Returns
/// nothing unless the term is a multiple of -log p(target). The term may be 0 for ignored targets.
std::optional<Loss> readLoss(Point term, ArrayRef<AffineExpr> symbols);

/// Returns whether `condition` compares a target with a constant, and sets `target` and `value`.
/// Sets `equals` to true for a comparison for equality, and to false for one for inequality.
bool matchIgnore(const Point &condition, int64_t &value, bool &equals, Point &target);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_LOSSTERMS_H
