//===- FunctionWork.cpp - Work of the functions of scores -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Counts those operations of score_mod, mask_mod, weight_mod and score_grad that are computed for
// each element, because they depend on both query and key. Operations that depend only on the row
// or only on the column are computed once for many elements and are not counted.
//
//===----------------------------------------------------------------------===//

#include "AttentionClocks.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;

/// Returns the work of the operations for each element that `counts` accepts.
static OpWork
workOfElement(Region &region, function_ref<bool(OpWork)> counts = [](OpWork) { return true; }) {
  OpWork work;
  if (region.empty())
    return work;
  RegionDependence dependence(region);
  for (Operation &op : region.front())
    if (OpWork own = workOf(op); dependence.of(&op) == Dependence::Both && counts(own))
      work += own;
  return work;
}

template <typename Op>
static FunctionWork workOfBoth(Op op) {
  FunctionWork work{workOfElement(op.getScoreMod()), workOfElement(op.getMaskMod()),
                    op.getScoreMod().empty() && op.getWeightMod().empty()};
  work.score += workOfElement(op.getWeightMod());
  if (!op.getMaskMod().empty())
    work.mask.issue += 1; // one selection
  if (!op.getWeightMod().empty())
    work.score.issue += 3; // a product, a comparison and a selection
  return work;
}

FunctionWork attention::workOfFunctions(AttentionOp op) { return workOfBoth(op); }

FunctionWork attention::workOfFunctions(AttentionGradOp op) {
  FunctionWork work = workOfBoth(op);
  OpWork both = workOfElement(op.getScoreGrad());
  // score_grad computes the special functions of score_mod again, for which one value suffices.
  OpWork again = workOfElement(op.getScoreMod(), [](OpWork own) { return own.special > 0; });
  if (both.special >= again.special)
    both += {-again.issue, -again.special};
  work.score += both;
  return work;
}
