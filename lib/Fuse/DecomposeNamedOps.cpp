//===- DecomposeNamedOps.cpp - Raised ops as generics -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Replaces each raised op, such as a softmax, by generics, from which row kernels are formed.
//
//   gather_rows    y[i.., c] = table[ids[i..], c]
//   others         fsdp/IR/Decompositions.h
//
// 1. Walk the function; replace each raised op with its generics. Do not replace attention if the
//    option `fuse-attention` is set and the target has a kernel for the attention op.
// 2. Generalise the other named linalg ops, except contract and fill.
//
// Takes O(ops) time. Does not replace scatter-adds, because they have a special kernel that is
// parallel and adds in a fixed order.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/TargetInfo.h"
#include "fsdp/Fuse/Passes.h"
#include "fsdp/IR/Decompositions.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"

#include <mutex>
#include <set>

namespace mlir::fsdp {
#define GEN_PASS_DEF_DECOMPOSENAMEDOPSPASS
#include "fsdp/Fuse/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;
using utils::IteratorType;

static SmallVector<Value> lowerToLinalg(GatherRowsOp op, OpBuilder &b) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  unsigned rank = type.getRank();
  AffineMap full = b.getMultiDimIdentityMap(rank);
  Value empty = tensor::EmptyOp::create(b, op.getLoc(), type.getShape(), type.getElementType());
  SmallVector<IteratorType> iters(rank, IteratorType::parallel);
  auto rows = linalg::GenericOp::create(
      b, op.getLoc(), type, op.getIds(), empty,
      ArrayRef<AffineMap>{full.dropResult(rank - 1), full}, iters,
      [&](OpBuilder &b, Location l, ValueRange a) {
        Value id = arith::IndexCastOp::create(b, l, b.getIndexType(), a[0]);
        Value column = linalg::IndexOp::create(b, l, rank - 1);
        Value x = tensor::ExtractOp::create(b, l, op.getTable(), ValueRange{id, column});
        linalg::YieldOp::create(b, l, x);
      });
  return {rows.getResult(0)};
}

namespace {
/// Determines whether the target has a kernel for an attention op. If the target has none, warns
/// with the reason. Warns only once for each reason, because many ops share a reason. Thread-safe,
/// because functions are processed in parallel.
class AttentionKernels {
public:
  explicit AttentionKernels(std::shared_ptr<const TargetInfo> target) : target(std::move(target)) {}

  bool have(Operation *op) {
    std::optional<std::string> reason = target->whyNoAttention(op);
    std::lock_guard<std::mutex> guard(mutex);
    if (reason && said.insert(*reason).second)
      op->emitWarning("no kernel for ") << *reason << "; its scores are stored as a whole";
    return !reason;
  }

private:
  std::shared_ptr<const TargetInfo> target;
  std::mutex mutex;
  std::set<std::string> said;
};

struct DecomposeNamedOpsPass : fsdp::impl::DecomposeNamedOpsPassBase<DecomposeNamedOpsPass> {
  using DecomposeNamedOpsPassBase::DecomposeNamedOpsPassBase;
  explicit DecomposeNamedOpsPass(std::shared_ptr<const TargetInfo> target)
      : kernels(std::make_shared<AttentionKernels>(std::move(target))) {}

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops) {
      if (fuseAttention && isa<AttentionOp, AttentionGradOp>(op) && (!kernels || kernels->have(op)))
        continue;
      rewriter.setInsertionPoint(op);
      bool raised = llvm::TypeSwitch<Operation *, bool>(op)
                        .Case<linalg::SoftmaxOp, CrossEntropyOp, CrossEntropyGradOp, GatherRowsOp,
                              RandomOp, GemmOp, AttentionOp, AttentionGradOp>([&](auto named) {
                          rewriter.replaceOp(op, lowerToLinalg(named, rewriter));
                          return true;
                        })
                        .Default(false);
      if (!raised && failed(generalize(op, rewriter)))
        return signalPassFailure();
      numDecomposed += raised;
    }
  }

  LogicalResult generalize(Operation *op, IRRewriter &rewriter) {
    auto named = dyn_cast<linalg::LinalgOp>(op);
    if (!named || isa<linalg::GenericOp, linalg::ContractOp, linalg::FillOp>(op))
      return success();
    ++numDecomposed;
    if (succeeded(linalg::generalizeNamedOp(rewriter, named)))
      return success();
    return op->emitError("cannot be written as linalg.generic");
  }

  // Attention kernels of the target. This member is null if the target has a kernel for every
  // attention op.
  std::shared_ptr<AttentionKernels> kernels;
};
} // namespace

std::unique_ptr<Pass> fsdp::createDecomposeNamedOpsPass(std::shared_ptr<const TargetInfo> target) {
  return std::make_unique<DecomposeNamedOpsPass>(std::move(target));
}
