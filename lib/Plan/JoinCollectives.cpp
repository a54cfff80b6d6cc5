//===- JoinCollectives.cpp - Undo starts without overlap --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %t = fsdp.all_reduce_start %x ..   channel 1 id 4
//   %y = fsdp.await %t                                ->   %y = fsdp.all_reduce %x ..
//
// 1. Find each await that directly follows the op that starts the collective.
// 2. Replace these two ops by the synchronous op, such as `fsdp.all_reduce`. Takes O(ops) time.
//
// Keeps discardable attributes. Does not change the two ops if other ops are between them.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/FSDP.h"
#include "fsdp/Plan/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_JOINCOLLECTIVESPASS
#include "fsdp/Plan/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static Operation *build(OpBuilder &b, UnshardStartOp op, TypeRange types) {
  return UnshardOp::create(b, op.getLoc(), types, op.getShard(), op.getUnitAttr(),
                           op.getSiteAttr());
}
static Operation *build(OpBuilder &b, ReduceScatterStartOp op, TypeRange types) {
  return ReduceScatterOp::create(b, op.getLoc(), types, op.getGrads(), op.getUnitAttr(),
                                 op.getParamsAttr(), op.getReductionAttr());
}
static Operation *build(OpBuilder &b, AllReduceStartOp op, TypeRange types) {
  return AllReduceOp::create(b, op.getLoc(), types, op.getInput(), op.getMeshAttr(),
                             op.getAxesAttr(), op.getReductionAttr());
}
static Operation *build(OpBuilder &b, AllGatherStartOp op, TypeRange types) {
  return AllGatherOp::create(b, op.getLoc(), types, op.getInput(), op.getMeshAttr(),
                             op.getAxesAttr());
}
static Operation *build(OpBuilder &b, BroadcastStartOp op, TypeRange types) {
  return BroadcastOp::create(b, op.getLoc(), types, op.getInput(), op.getMeshAttr(),
                             op.getAxesAttr(), op.getRootAttr());
}
static Operation *build(OpBuilder &b, ShiftStartOp op, TypeRange types) {
  return ShiftOp::create(b, op.getLoc(), types, op.getInput(), op.getMeshAttr(), op.getAxesAttr(),
                         op.getSiteAttr());
}

namespace {
struct JoinCollectivesPass : fsdp::impl::JoinCollectivesPassBase<JoinCollectivesPass> {
  void runOnOperation() override {
    SmallVector<AwaitOp> adjacent;
    getOperation().walk([&](AwaitOp op) {
      if (op.getToken().getDefiningOp() == op->getPrevNode())
        adjacent.push_back(op);
    });
    for (AwaitOp await : adjacent) {
      Operation *start = await.getToken().getDefiningOp();
      OpBuilder b(start);
      Operation *whole = llvm::TypeSwitch<Operation *, Operation *>(start)
                             .Case<UnshardStartOp, ReduceScatterStartOp, AllReduceStartOp,
                                   AllGatherStartOp, BroadcastStartOp, ShiftStartOp>(
                                 [&](auto op) { return build(b, op, await.getResultTypes()); });
      whole->setDiscardableAttrs(start->getDiscardableAttrDictionary());
      await.replaceAllUsesWith(whole->getResults());
      await.erase();
      start->erase();
      ++numJoined;
    }
  }
};
} // namespace
