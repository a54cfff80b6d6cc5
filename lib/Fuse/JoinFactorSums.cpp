//===- JoinFactorSums.cpp - Sums of factors in contractions -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes the gradient of a bias in the kernel of the gradient of its weight, which reads the same
// gradient of the output:
//
//   %db = fsdp.dispatch (%dy) {           %dw, %db = fsdp.dispatch (%x, %dy) {
//     yield sum of rows of %dy              %w = contract %x, %dy
//   }                                 =>    %s = sum of rows of %dy
//   %dw = fsdp.dispatch (%x, %dy) {         yield %w, %s
//     yield contract %x, %dy              }
//   }
//
// For each dispatch that only computes a sum of one operand (TensorSum.h):
// 1. Find the dispatches in the same block that have a contraction with this operand as a factor.
// 2. Join with the first of them that does not depend on the sum, whose contraction adds over the
//    same dimensions, and whose kernel on the target can also compute the sum.
// 3. If the sum preceded the contraction, move its readers after the contraction.
//
// Takes O(ops) time per sum. Sums of other tensors than factors, and several sums of one factor,
// are not joined.
//
//===----------------------------------------------------------------------===//

#include "BlockOrder.h"
#include "fsdp/Analysis/TargetInfo.h"
#include "fsdp/Fuse/Passes.h"
#include "fsdp/IR/TensorSum.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_JOINFACTORSUMSPASS
#include "fsdp/Fuse/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static Value getYielded(DispatchOp dispatch, unsigned result) {
  return cast<YieldOp>(dispatch.getBody().front().getTerminator()).getOperand(result);
}

static linalg::ContractOp findContraction(DispatchOp dispatch) {
  auto contractions = dispatch.getBody().front().getOps<linalg::ContractOp>();
  return contractions.empty() ? linalg::ContractOp() : *contractions.begin();
}

/// If the dispatch only computes a sum of an operand, returns this operand. Otherwise returns null.
static Value findSummed(DispatchOp dispatch) {
  if (dispatch.getNumResults() != 1 || findContraction(dispatch))
    return {};
  std::optional<TensorSum> sum = matchTensorSum(getYielded(dispatch, 0));
  if (!sum)
    return {};
  Value source = sum->source;
  while (auto slice = source.getDefiningOp<tensor::ExtractSliceOp>())
    source = slice.getSource();
  auto arg = dyn_cast<BlockArgument>(source);
  return arg ? dispatch.getInputs()[arg.getArgNumber()] : Value();
}

/// Returns true if `op` reads a result of `dispatch`, directly or through other ops of the block.
static bool dependsOn(Operation *op, DispatchOp dispatch) {
  llvm::SetVector<Operation *> readers;
  readers.insert(dispatch);
  for (size_t i = 0; i < readers.size(); ++i)
    for (Operation *user : readers[i]->getUsers()) {
      Operation *top = op->getBlock()->findAncestorOpInBlock(*user);
      if (top == op)
        return true;
      if (top && top->isBeforeInBlock(op))
        readers.insert(top);
    }
  return false;
}

/// Creates a dispatch before `contraction` that computes the results of both dispatches.
static DispatchOp buildJoined(DispatchOp contraction, DispatchOp sum) {
  OpBuilder b(contraction);
  llvm::SetVector<Value> operands(contraction.getInputs().begin(), contraction.getInputs().end());
  operands.insert(sum.getInputs().begin(), sum.getInputs().end());
  SmallVector<Type> types(contraction.getResultTypes());
  llvm::append_range(types, sum.getResultTypes());
  SmallVector<int64_t> inplace(types.size(), -1);
  auto joined = DispatchOp::create(b, contraction.getLoc(), types, operands.getArrayRef(),
                                   b.getDenseI64ArrayAttr(inplace));
  joined->setDiscardableAttrs(contraction->getDiscardableAttrDictionary());
  Block *block = b.createBlock(&joined.getBody());
  IRMapping ofValues;
  for (Value v : operands)
    ofValues.map(v, block->addArgument(v.getType(), v.getLoc()));
  SmallVector<Value> yielded;
  for (DispatchOp part : {contraction, sum}) {
    IRMapping mapping;
    for (auto [arg, operand] : llvm::zip_equal(part.getBody().getArguments(), part.getInputs()))
      mapping.map(arg, ofValues.lookup(operand));
    for (Operation &op : part.getBody().front().without_terminator())
      b.clone(op, mapping);
    for (unsigned i = 0; i < part.getNumResults(); ++i)
      yielded.push_back(mapping.lookup(getYielded(part, i)));
  }
  YieldOp::create(b, joined.getLoc(), yielded);
  return joined;
}

namespace {
struct JoinFactorSumsPass : fsdp::impl::JoinFactorSumsPassBase<JoinFactorSumsPass> {
  using JoinFactorSumsPassBase::JoinFactorSumsPassBase;
  explicit JoinFactorSumsPass(std::shared_ptr<const TargetInfo> target)
      : target(std::move(target)) {}

  /// Returns true if the contraction of the joined dispatch has the factor that its last result
  /// adds, and the target has a kernel for both.
  bool isSupported(DispatchOp joined) const {
    std::optional<TensorSum> sum = matchTensorSum(getYielded(joined, joined.getNumResults() - 1));
    return findSummedFactor(findContraction(joined), *sum) &&
           (!target || target->sumsFactors(joined));
  }

  /// Joins the dispatch `sum` with a dispatch that reads `summed`. Returns true if it has joined.
  bool join(DispatchOp sum, Value summed) {
    SmallVector<DispatchOp> candidates;
    for (Operation *user : summed.getUsers())
      if (auto dispatch = dyn_cast<DispatchOp>(user);
          dispatch && dispatch->getBlock() == sum->getBlock() && findContraction(dispatch))
        candidates.push_back(dispatch);
    llvm::sort(candidates, [](DispatchOp a, DispatchOp b) { return a->isBeforeInBlock(b); });
    candidates.erase(llvm::unique(candidates), candidates.end());
    for (DispatchOp contraction : candidates) {
      if (dependsOn(contraction, sum))
        continue;
      DispatchOp joined = buildJoined(contraction, sum);
      if (!isSupported(joined)) {
        joined.erase();
        continue;
      }
      contraction.replaceAllUsesWith(joined.getResults().drop_back());
      sum.replaceAllUsesWith(joined.getResults().take_back());
      contraction.erase();
      sum.erase();
      ++numJoined;
      return true;
    }
    return false;
  }

  void runOnOperation() override {
    SmallVector<std::pair<DispatchOp, Value>> sums;
    getOperation().walk([&](DispatchOp dispatch) {
      if (Value summed = findSummed(dispatch))
        sums.push_back({dispatch, summed});
    });
    llvm::SetVector<Block *> changed;
    for (auto [dispatch, summed] : sums) {
      Block *block = dispatch->getBlock();
      if (join(dispatch, summed))
        changed.insert(block);
    }
    for (Block *block : changed)
      restoreOrder(block->without_terminator());
  }

  std::shared_ptr<const TargetInfo> target;
};
} // namespace

std::unique_ptr<Pass> fsdp::createJoinFactorSumsPass(std::shared_ptr<const TargetInfo> target) {
  return std::make_unique<JoinFactorSumsPass>(std::move(target));
}
