//===- SpeculateBranches.cpp - Branches become selects ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The lanes of a vector cannot take different branches. Therefore, branches in the bodies of a
// kernel's linalg ops are rewritten as selects:
//
//   %r = scf.if %c {                      %l = math.log %a
//     %l = math.log %a             =>     %r = arith.select %c, %l, %z
//     scf.yield %l
//   } else { scf.yield %z }
//
//  1. Visit branches from the innermost outwards. Rewrite an scf.if if the ops of both branches may
//     run regardless of the condition: they have no effects, cannot trap and contain no branches.
//  2. Clamp the indices of tensor reads to the bounds of the tensor, because the indices may be out
//     of bounds if the original branch would not be taken.
//
// Takes time linear in the number of ops. Kernels in which branches remain are lowered by the
// general lowering.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::fsdp;

static bool mayRunAlways(Region &region) {
  return llvm::all_of(region.getOps(), [](Operation &op) {
    if (isa<scf::YieldOp>(op))
      return true;
    if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      return extract.getTensor().getType().hasStaticShape() &&
             extract.getTensor().getType().getNumElements() > 0;
    return op.getNumRegions() == 0 && isPure(&op);
  });
}

/// Returns true if `index` is in [0, size) in every iteration.
static bool isInside(Value index, int64_t size) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return *constant >= 0 && *constant < size;
  auto loop = index.getDefiningOp<linalg::IndexOp>();
  auto op = loop ? loop->getParentOfType<linalg::LinalgOp>() : linalg::LinalgOp();
  return op && op.getStaticLoopRanges()[loop.getDim()] <= size;
}

static void clampIndices(IRRewriter &rewriter, tensor::ExtractOp op) {
  rewriter.setInsertionPoint(op);
  for (auto [operand, size] :
       llvm::zip_equal(op.getIndicesMutable(), op.getTensor().getType().getShape())) {
    if (isInside(operand.get(), size))
      continue;
    Value first = arith::ConstantIndexOp::create(rewriter, op.getLoc(), 0);
    Value last = arith::ConstantIndexOp::create(rewriter, op.getLoc(), size - 1);
    Value index = arith::MaxSIOp::create(rewriter, op.getLoc(), operand.get(), first);
    operand.set(arith::MinSIOp::create(rewriter, op.getLoc(), index, last));
  }
}

static void speculate(IRRewriter &rewriter, scf::IfOp branch) {
  // An scf.if without results has no effects, because mayRunAlways() is true of both branches.
  if (branch.getNumResults() == 0) {
    rewriter.eraseOp(branch);
    return;
  }
  for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()})
    for (Operation &op : llvm::make_early_inc_range(region->front().without_terminator())) {
      if (auto extract = dyn_cast<tensor::ExtractOp>(op))
        clampIndices(rewriter, extract);
    }
  for (Block *block : {branch.thenBlock(), branch.elseBlock()})
    for (Operation &op : llvm::make_early_inc_range(block->without_terminator()))
      rewriter.moveOpBefore(&op, branch);
  rewriter.setInsertionPoint(branch);
  SmallVector<Value> chosen;
  for (auto [yes, no] :
       llvm::zip_equal(branch.thenYield().getOperands(), branch.elseYield().getOperands()))
    chosen.push_back(
        arith::SelectOp::create(rewriter, branch.getLoc(), branch.getCondition(), yes, no));
  rewriter.replaceOp(branch, chosen);
}

void fsdp::speculateBranches(func::FuncOp kernel) {
  SmallVector<scf::IfOp> branches;
  // The walk visits inner branches first.
  kernel.walk([&](scf::IfOp branch) {
    if (branch->getParentOfType<linalg::LinalgOp>())
      branches.push_back(branch);
  });
  IRRewriter rewriter(kernel.getContext());
  for (scf::IfOp branch : branches)
    if (mayRunAlways(branch.getThenRegion()) && mayRunAlways(branch.getElseRegion()))
      speculate(rewriter, branch);
}
