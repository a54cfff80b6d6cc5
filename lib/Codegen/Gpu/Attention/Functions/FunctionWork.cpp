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
// An operation of score_grad is counted in a pass only if dS or a contribution that the pass sums
// depends on it, and if score_mod does not compute the same value.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Attention/AttentionClocks.h"
#include "Codegen/Kernel/Attention/AttentionContributions.h"
#include "SharedDraws.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;

/// Returns the work of the operations for each element that `counts` accepts. Lanes share random
/// numbers if `shares` is true.
static OpWork workOfElement(
    Region &region, bool shares = false,
    function_ref<bool(Operation &)> counts = [](Operation &) { return true; }) {
  OpWork work;
  if (region.empty())
    return work;
  RegionDependence dependence(region);
  auto workOfOp = [&](Operation &op) -> OpWork {
    if (isa<math::TanhOp>(op))
      return {6, 2}; // the short form
    auto random = dyn_cast<RandomElementOp>(op);
    if (shares && random && canShareDraw(random, region.getArgument(3), dependence))
      return {sharedDrawIssue, 0};
    return workOf(op);
  };
  for (Operation &op : region.front())
    if (dependence.of(&op) == Dependence::Both && counts(op))
      work += workOfOp(op);
  return work;
}

template <typename Op>
static FunctionWork workOfBoth(Op op) {
  FunctionWork work{workOfElement(op.getScoreMod()), workOfElement(op.getMaskMod()),
                    op.getScoreMod().empty() && op.getWeightMod().empty()};
  work.score += workOfElement(op.getWeightMod(), /*shares=*/true);
  if (!op.getMaskMod().empty())
    work.mask.issue += 1; // one selection
  if (!op.getWeightMod().empty())
    work.score.issue += // a product; if a factor may be infinite, a comparison and a selection
        isFinite(op.getWeightMod().front().getTerminator()->getOperand(0)) ? 1 : 3;
  return work;
}

FunctionWork attention::workOfFunctions(AttentionOp op) { return workOfBoth(op); }

/// Returns the operations of score_grad whose values score_mod computes, too.
static DenseSet<Operation *> findRepeated(AttentionGradOp op) {
  DenseSet<Operation *> repeated;
  Block &mod = op.getScoreMod().front(), &grad = op.getScoreGrad().front();
  // Values of score_mod by the equal values of score_grad, which has one more argument: the
  // cotangent of the score.
  DenseMap<Value, Value> equal;
  for (BlockArgument argument : mod.getArguments())
    equal[grad.getArgument(argument.getArgNumber() + 1)] = argument;
  auto check = [&](Value ofGrad, Value ofMod) { return success(equal.lookup(ofGrad) == ofMod); };
  for (Operation &own : grad.without_terminator())
    for (Operation &other : mod.without_terminator())
      if (isPure(&own) &&
          OperationEquivalence::isEquivalentTo(&own, &other, check, /*markEquivalent=*/nullptr,
                                               OperationEquivalence::IgnoreLocations)) {
        repeated.insert(&own);
        for (auto [result, same] : llvm::zip_equal(own.getResults(), other.getResults()))
          equal[result] = same;
        break;
      }
  return repeated;
}

/// Returns the contributions to captured tensors that `pass` sums. Kernels that own keys sum those
/// with an index for each column.
static SmallVector<Operation *> findContributions(AttentionGradOp op, AttentionPass pass,
                                                  bool sumsAll) {
  SmallVector<Operation *> found;
  for (const Contributed &contributed : collectContributions(op))
    if (pass == AttentionPass::Tables ? contributed.where == Dependence::Both
                                      : sumsAll || (contributed.where == Dependence::Column) !=
                                                       (pass == AttentionPass::Queries))
      found.push_back(contributed.op);
  return found;
}

/// Returns the work of score_grad and of the sums of contributions.
static OpWork workOfGrad(AttentionGradOp op, AttentionPass pass, bool sumsAll) {
  if (op.getScoreGrad().empty() || pass == AttentionPass::KeysOfV)
    return {};
  SmallVector<Operation *> contributions = findContributions(op, pass, sumsAll),
                           pending = contributions;
  pending.push_back(op.getScoreGrad().front().getTerminator());
  DenseSet<Operation *> used;
  while (!pending.empty())
    for (Value operand : pending.pop_back_val()->getOperands())
      if (Operation *producer = operand.getDefiningOp(); producer && used.insert(producer).second)
        pending.push_back(producer);
  DenseSet<Operation *> repeated = findRepeated(op);
  OpWork work = workOfElement(op.getScoreGrad(), /*shares=*/false, [&](Operation &operation) {
    return used.contains(&operation) && !repeated.contains(&operation);
  });
  // An addition; or conversions, the address and the addition to a table.
  double perContribution = pass == AttentionPass::Tables ? 10 : 1;
  work.issue += perContribution * static_cast<double>(contributions.size());
  return work;
}

FunctionWork attention::workOfFunctions(AttentionGradOp op, AttentionPass pass, bool sumsAll) {
  FunctionWork work = workOfBoth(op);
  work.score += workOfGrad(op, pass, sumsAll);
  return work;
}
