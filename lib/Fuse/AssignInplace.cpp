//===- AssignInplace.cpp - Write results over operands ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lets a dispatch write a result over an operand that is not read afterwards.
//
//   %q = fsdp.dispatch (%p, %g) inplace [-1]     =>     inplace [0]      if %p is not read again
//
// Result i of a dispatch may overwrite operand j under these conditions:
//  1. The types of result and operand are equal. No op after the dispatch reads the operand or a
//     view of its buffer.
//  2. If operand j is an argument of the function, result i must update this argument.
//  3. In the body, linalg ops read the operand and write the result only with identity maps, so
//     that no element is read after it is overwritten. No op permutes or slices values that are
//     computed from the operand. This condition does not apply if the operand is an accumulator,
//     which is the init of the op that computes the result.
//  4. No op reads the operand in a later pass over a row than the pass that writes the result. A
//     reduction ends a pass. Results and reductions are computed in the order of their ops; all
//     other values are computed where these read them.
//
// Takes O(uses) time. lib/Plan adds a copy if a result that must be in place cannot be in place.
//
//===----------------------------------------------------------------------===//

#include "Clusters.h"
#include "fsdp/Fuse/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_ASSIGNINPLACEPASS
#include "fsdp/Fuse/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the result of the function that updates this argument, or nothing.
static std::optional<unsigned> updatedBy(func::FuncOp func, BlockArgument arg) {
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (auto index = func.getResultAttrOfType<IntegerAttr>(i, FSDPDialect::updatesAttr))
      if (index.getInt() == arg.getArgNumber())
        return i;
  return std::nullopt;
}

/// Returns the value that `v` views, through any number of views.
static Value rootOf(Value v) {
  while (Operation *def = v.getDefiningOp()) {
    if (!isContiguousView(def) && !isa<OwnPieceOp>(def))
      break;
    v = def->getOperand(0);
  }
  return v;
}

/// Returns true if an op after `op` reads the bytes of `root`.
static bool isReadLater(Value root, Operation *op) {
  for (Operation *user : root.getUsers()) {
    if (isContiguousView(user) || isa<OwnPieceOp>(user)) {
      if (isReadLater(user->getResult(0), op))
        return true;
      continue;
    }
    if (user == op)
      continue;
    Operation *top = op->getBlock()->findAncestorOpInBlock(*user);
    if (!top || op->isBeforeInBlock(top))
      return true;
  }
  return false;
}

/// Returns true if an op in the dispatch reads `arg`, or a value that is computed from it, at other
/// indices than its own: through a permutation, a slice or a concatenation. A kernel may compute
/// such a value when it needs an element.
static bool isMoved(BlockArgument arg) {
  SmallVector<Value> worklist{arg};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!worklist.empty())
    for (OpOperand &use : worklist.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (auto op = dyn_cast<linalg::LinalgOp>(user)) {
        AffineMap map = op.getMatchingIndexingMap(&use);
        if (map.isPermutation() && !map.isIdentity())
          return true;
      } else if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, YieldOp>(user)) {
        return true;
      }
      if (seen.insert(user).second)
        llvm::append_range(worklist, user->getResults());
    }
  return false;
}

static bool isReduction(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.getNumReductionLoops() > 0;
}

/// Returns true if the dispatch reads `arg` in a later pass over a row than it writes `made`.
static bool isReadInLaterPass(BlockArgument arg, Value made) {
  Operation *writer = made.getDefiningOp();
  SmallVector<Value> worklist{arg};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!worklist.empty())
    for (Operation *user : worklist.pop_back_val().getUsers()) {
      if (isa<YieldOp>(user) || !seen.insert(user).second)
        continue;
      bool isResult = llvm::any_of(user->getUsers(), llvm::IsaPred<YieldOp>);
      if (!isResult && !isReduction(user))
        llvm::append_range(worklist, user->getResults());
      else if (writer->isBeforeInBlock(user) &&
               std::any_of(std::next(writer->getIterator()), user->getIterator(),
                           [](Operation &op) { return isReduction(&op); }))
        return true;
    }
  return false;
}

/// Returns true if each element of the operand is only read to compute the element of the result at
/// the same indices.
static bool isElementwise(DispatchOp dispatch, unsigned result, unsigned operand) {
  Block &body = dispatch.getBody().front();
  auto identity = [](linalg::LinalgOp op, OpOperand &use) {
    return op && op.getMatchingIndexingMap(&use).isIdentity();
  };
  auto made = cast<YieldOp>(body.getTerminator()).getOperand(result);
  // A scatter may overwrite its init, because it adds to the init in place.
  if (auto scatter = made.getDefiningOp<ScatterAddRowsOp>())
    return scatter.getInit() == body.getArgument(operand) && scatter.getInit().hasOneUse();
  auto producer = made.getDefiningOp<linalg::LinalgOp>();
  if (!producer)
    return false;
  OpOperand *init = producer.getDpsInitOperand(cast<OpResult>(made).getResultNumber());
  BlockArgument arg = body.getArgument(operand);
  if (init->get() == arg && arg.hasOneUse())
    return true; // the operand is an accumulator
  if (!identity(producer, *init) || producer.getNumReductionLoops())
    return false;
  return !isMoved(arg) && !isReadInLaterPass(arg, made) &&
         llvm::all_of(arg.getUses(), [&](OpOperand &use) {
           return identity(dyn_cast<linalg::GenericOp>(use.getOwner()), use);
         });
}

/// Returns true if the result may overwrite `root`. `root` must be a result of a dispatch, a
/// collective or a loop, or the argument or loop-carried value that the result updates.
static bool isOwned(Value root, DispatchOp dispatch, unsigned result, func::FuncOp func) {
  if (auto arg = dyn_cast<BlockArgument>(root)) {
    Operation *owner = arg.getOwner()->getParentOp();
    // A sum that a loop carries may be overwritten if the loop yields the result as the sum's next
    // value.
    if (isa<scf::ForOp>(owner))
      return arg.getArgNumber() > 0 &&
             llvm::is_contained(arg.getOwner()->getTerminator()->getOperands(),
                                dispatch.getResult(result));
    if (owner != func)
      return false;
    auto index = updatedBy(func, arg);
    if (!index)
      return false;
    Value updated = func.getBody().front().getTerminator()->getOperand(*index);
    // If the updated value is the result of a gather, the dispatch must compute the gathered piece.
    while (auto gather = updated.getDefiningOp<AllGatherOp>())
      updated = gather.getInput();
    return updated == dispatch.getResult(result);
  }
  return isa<DispatchOp, ReduceScatterOp, FlatReduceScatterOp, AllReduceOp, AllGatherOp, ShiftOp,
             scf::ForOp>(root.getDefiningOp());
}

namespace {
struct AssignInplacePass : fsdp::impl::AssignInplacePassBase<AssignInplacePass> {
  /// Chooses the operand that the result overwrites, if any operand is suitable. If `state` is
  /// true, considers only operands that are arguments of the function or loop-carried values. If
  /// `state` is false, considers only the other operands.
  bool assign(DispatchOp dispatch, SmallVectorImpl<int64_t> &inplace, unsigned result,
              func::FuncOp func, bool state) {
    for (auto [index, value] : llvm::enumerate(dispatch.getInputs())) {
      if (value.getType() != dispatch.getResult(result).getType() ||
          llvm::is_contained(inplace, int64_t(index)))
        continue;
      Value root = rootOf(value);
      if (isa<BlockArgument>(root) != state)
        continue;
      bool twice =
          llvm::count_if(dispatch.getInputs(), [&](Value v) { return rootOf(v) == root; }) > 1;
      // The operand must be defined in the block of the dispatch, as loop-carried values are.
      bool near = root.getParentBlock() == dispatch->getBlock();
      if (twice || !near || !isOwned(root, dispatch, result, func) || isReadLater(root, dispatch) ||
          !isElementwise(dispatch, result, index))
        continue;
      inplace[result] = index;
      ++numInplace;
      return true;
    }
    return false;
  }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    func.walk([&](DispatchOp dispatch) {
      SmallVector<int64_t> inplace(dispatch.getInplace());
      for (bool state : {true, false})
        for (unsigned result = 0; result < dispatch.getNumResults(); ++result)
          if (inplace[result] == -1)
            assign(dispatch, inplace, result, func, state);
      dispatch.setInplace(inplace);
    });
  }
};
} // namespace
