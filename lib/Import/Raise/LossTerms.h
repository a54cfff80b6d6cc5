//===- LossTerms.h - What a term of a loss computes -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_LOSSTERMS_H
#define FSDP_LIB_IMPORT_LOSSTERMS_H

#include "Structure/Points.h"
#include <optional>

namespace mlir::fsdp {

/// What a sum of terms turns out to be.
struct Loss {
  Point logits; // a tensor, its last position the class
  Point target;
  double factor = 1; // of the sum of -log p
  std::optional<int64_t> ignore;
  SmallVector<AffineExpr> rows; // symbols that are summed over
};

/// Reads a term of a sum over the loops `symbols`: a factor of -log p of a target, or of 0 for a
/// target that is ignored. Returns nothing for another formula.
std::optional<Loss> readLoss(Point term, ArrayRef<AffineExpr> symbols);

/// Whether `condition` compares a target with a constant, `value`, and whether equality (`equals`)
/// or inequality fulfils it.
bool matchIgnore(const Point &condition, int64_t &value, bool &equals, Point &target);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_LOSSTERMS_H
