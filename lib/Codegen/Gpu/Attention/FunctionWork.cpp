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
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;

/// Returns an operation's number of instructions and its number of special-function results.
static ElementWork workOf(Operation &op) {
  if (isa<FSDPDialect>(op.getDialect())) {
    // RandomElementOp computes ten rounds of Philox and uses one of the four resulting words.
    constexpr double philox = 60;
    return {op.hasTrait<OpTrait::IsTerminator>() ? 0.0 : philox, 0};
  }
  if (isa<tensor::ExtractOp>(op))
    return {3, 0}; // address and load
  if (isa<math::TanhOp>(op))
    return {6, 2}; // 1 - 2 / (1 + exp2(x))
  if (isa<math::ExpOp, math::Exp2Op, math::RsqrtOp>(op))
    return {2, 1};
  if (isa<arith::DivFOp>(op))
    return {2, 1};
  if (isa<math::MathDialect>(op.getDialect()))
    return {20, 1};
  if (isa<arith::ConstantOp, arith::IndexCastOp, arith::IndexCastUIOp>(op))
    return {};
  return {1, 0};
}

static ElementWork workOf(Region &region) {
  ElementWork work;
  if (region.empty())
    return work;
  RegionDependence dependence(region);
  for (Operation &op : region.front())
    if (dependence.of(&op) == Dependence::Both)
      work += workOf(op);
  return work;
}

template <typename Op>
static FunctionWork workOfBoth(Op op) {
  FunctionWork work{workOf(op.getScoreMod()), workOf(op.getMaskMod())};
  work.score += workOf(op.getWeightMod());
  if (!op.getMaskMod().empty())
    work.mask.issue += 1; // one selection
  if (!op.getWeightMod().empty())
    work.score.issue += 3; // a product, a comparison and a selection
  return work;
}

FunctionWork attention::workOfFunctions(AttentionOp op) { return workOfBoth(op); }

FunctionWork attention::workOfFunctions(AttentionGradOp op) {
  FunctionWork work = workOfBoth(op);
  work.score += workOf(op.getScoreGrad());
  return work;
}
