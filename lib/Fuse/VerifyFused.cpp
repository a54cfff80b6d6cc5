//===- VerifyFused.cpp - Contract after Fuse --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Clusters.h"
#include "fsdp/Fuse/Passes.h"
#include "fsdp/IR/HeadLayout.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYFUSEDPASS
#include "fsdp/Fuse/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static bool mayStandOutside(Operation *op) {
  if (isa<DispatchOp, UnshardOp, ShardOp, ReduceScatterOp, AllReduceOp, AllGatherOp, BroadcastOp,
          ShiftOp, FlatReduceScatterOp, OwnPieceOp, scf::ForOp, scf::YieldOp, func::ReturnOp>(op))
    return true;
  if (isa<arith::ConstantOp>(op))
    return op->getResult(0).getType().isIndex();
  bool index = llvm::all_of(op->getResultTypes(), [](Type t) { return t.isIndex(); });
  return isContiguousView(op) || (index && isa<arith::ArithDialect>(op->getDialect()));
}

namespace {
struct VerifyFusedPass : fsdp::impl::VerifyFusedPassBase<VerifyFusedPass> {
  LogicalResult check(Operation *op) {
    ++numChecked;
    if (!mayStandOutside(op))
      return op->emitError("'") << op->getName() << "' is outside a dispatch after the stage Fuse";
    auto dispatch = dyn_cast<DispatchOp>(op);
    if (!dispatch)
      return success();
    unsigned heavy = llvm::count_if(dispatch.getBody().front(), [](Operation &o) {
      return isa<linalg::ContractOp, ScatterAddRowsOp>(o);
    });
    Block &body = dispatch.getBody().front();
    unsigned computing = llvm::count_if(body.without_terminator(),
                                        [](Operation &o) { return !isMoveOfElements(&o); });
    if (computing > 1 && llvm::any_of(body, [](Operation &o) { return isAttention(&o); }))
      return dispatch.emitError(
                 "expected attention to be the only op of its dispatch that computes")
             << ", found " << computing << " such ops";
    return heavy <= 1
               ? success()
               : dispatch.emitError("expected at most one contraction or scatter, found ") << heavy;
  }

  void runOnOperation() override {
    bool failed = false;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == getOperation())
        return WalkResult::advance();
      failed |= mlir::failed(check(op));
      return isa<scf::ForOp>(op) ? WalkResult::advance() : WalkResult::skip();
    });
    if (failed)
      signalPassFailure();
  }
};
} // namespace
