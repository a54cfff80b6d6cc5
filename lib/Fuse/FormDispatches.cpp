//===- FormDispatches.cpp - One dispatch per kernel -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Turns each cluster of ops into an `fsdp.dispatch`.
//
//   %e = tensor.empty                      %y = fsdp.dispatch (%x) {kind = "row"} {
//   %f = linalg.fill %zero, %e             ^bb0(%a):
//   %s = linalg.generic %x -> %f     =>      %e, %f, %s, %y as on the left, on %a
//   %y = linalg.generic %x, %s               fsdp.yield %y
//                                          }
//
// 1. An auxiliary op is copied into each kernel that reads its result. An auxiliary op also becomes
//    a separate dispatch if its result is read by attention, or by an op that is in no kernel (a
//    collective, a loop, a view).
// 2. Group the ops of each block (Clusters.cpp).
// 3. For each cluster, clone its members and the auxiliary ops that they need into a dispatch.
//    Values that are defined outside the cluster become operands of the dispatch, in order of first
//    use. Results of members that are used outside the cluster become results of the dispatch.
// 4. Erase the originals, sort the block topologically, erase dead ops.
//
// Takes O(ops · window) time. Equal clusters become equal dispatches, so that equal layers of a
// model use the same kernels.
//
//===----------------------------------------------------------------------===//

#include "BlockOrder.h"
#include "Clusters.h"
#include "fsdp/Fuse/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FORMDISPATCHESPASS
#include "fsdp/Fuse/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// Builds one dispatch.
class DispatchBuilder {
public:
  DispatchBuilder(const OpCluster &cluster, AuxiliaryOps &auxiliary, int64_t maxOps)
      : cluster(cluster), auxiliary(auxiliary), maxOps(maxOps) {
    members.insert(cluster.members.begin(), cluster.members.end());
  }
  LogicalResult build();

private:
  LogicalResult collect(Operation *op, int64_t depth);
  bool hasOutsideUse(Value v);

  const OpCluster &cluster;
  AuxiliaryOps &auxiliary;
  int64_t maxOps;
  llvm::SmallPtrSet<Operation *, 8> members;
  llvm::SetVector<Operation *> body; // members and auxiliary ops, each after the ops that it reads
  llvm::SetVector<Value> operands;
};
} // namespace

/// Adds \p op to the body after the members and auxiliary ops that it reads. \p depth is the number
/// of auxiliary ops between \p op and the member that reads them. Fails with a diagnostic if \p op
/// cannot be computed inside a kernel.
LogicalResult DispatchBuilder::collect(Operation *op, int64_t depth) {
  if (body.contains(op))
    return success();
  if (depth > 2 * maxOps) {
    InFlightDiagnostic diag =
        op->emitError("expected a kernel to compute this op in a chain of at most ")
        << 2 * maxOps << " dependent scalars or views, found a longer one";
    diag.attachNote()
        << "compute the chain on tensors with elementwise ops, or join its views into one";
    return diag;
  }
  for (Value v : readValues(op)) {
    Operation *def = v.getDefiningOp();
    // Attention reads whole tensors, so auxiliary ops are not copied into its kernel.
    if (def && (members.contains(def) || (auxiliary.contains(def) && !isAttention(op)))) {
      if (failed(collect(def, depth + 1)))
        return failure();
      continue;
    }
    if (!isa<RankedTensorType>(v.getType()))
      return op->emitOpError("reads a value of type ")
             << v.getType()
             << " that no kernel can compute; compute it from tensors of static shape";
    operands.insert(v);
  }
  body.insert(op);
  return success();
}

bool DispatchBuilder::hasOutsideUse(Value v) {
  return llvm::any_of(v.getUsers(), [&](Operation *user) {
    Operation *top = cluster.members.front()->getBlock()->findAncestorOpInBlock(*user);
    return !top || !members.contains(top);
  });
}

LogicalResult DispatchBuilder::build() {
  for (Operation *op : cluster.members)
    if (failed(collect(op, 0)))
      return failure();
  SmallVector<Value> results;
  for (Operation *op : cluster.members)
    for (Value v : op->getResults())
      if (hasOutsideUse(v))
        results.push_back(v);
  if (results.empty())
    return success(); // no value of the cluster is used outside
  Operation *last = cluster.members.back();
  OpBuilder b(last);
  b.setInsertionPointAfter(last);
  SmallVector<int64_t> inplace(results.size(), -1);
  auto dispatch = DispatchOp::create(b, last->getLoc(), ValueRange(results).getTypes(),
                                     operands.getArrayRef(), b.getDenseI64ArrayAttr(inplace));
  dispatch->setAttr("kind", b.getStringAttr(stringify(cluster.kind)));
  Block *block = b.createBlock(&dispatch.getBody());
  IRMapping mapping;
  for (Value v : operands)
    mapping.map(v, block->addArgument(v.getType(), v.getLoc()));
  for (Operation *op : body) {
    Operation *copy = b.clone(*op, mapping);
    // Move the unit's name to an attribute of the dispatch, because several units may use the
    // kernel.
    for (StringRef name : {FSDPDialect::rowsAttr, FSDPDialect::unitAttr})
      if (Attribute unit = copy->removeDiscardableAttr(name))
        dispatch->setAttr(name, unit);
  }
  SmallVector<Value> yielded;
  for (Value v : results)
    yielded.push_back(mapping.lookup(v));
  YieldOp::create(b, last->getLoc(), yielded);
  for (auto [from, to] : llvm::zip_equal(results, dispatch.getResults()))
    from.replaceUsesWithIf(to, [&](OpOperand &use) {
      Operation *top = last->getBlock()->findAncestorOpInBlock(*use.getOwner());
      return !top || !members.contains(top);
    });
  return success();
}

/// Wraps an auxiliary op (constant, fill, strided view, broadcast) in a separate dispatch if one of
/// its readers needs the whole result. Such readers are attention, and ops that are in no kernel:
/// collectives, loops that carry a sum, and views.
static LogicalResult wrapLoose(Block &block, int64_t maxOps) {
  auto isLoose = [](OpOperand &use) {
    Operation *user = use.getOwner();
    return isAttention(user) ||
           (!isAuxiliary(user) && !isComputation(user) && !isa<linalg::YieldOp>(user));
  };
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!isAuxiliary(&op) || isa<tensor::EmptyOp>(op) || llvm::none_of(op.getUses(), isLoose) ||
        !isa<RankedTensorType>(op.getResult(0).getType()))
      continue;
    OpBuilder b(&op);
    b.setInsertionPointAfter(&op);
    Operation *copy = b.clone(op);
    op.getResult(0).replaceUsesWithIf(copy->getResult(0), isLoose);
    OpCluster alone;
    alone.members = {copy};
    alone.kind = isa<tensor::TensorDialect>(op.getDialect()) ? ClusterKind::Copy : ClusterKind::Map;
    AuxiliaryOps auxiliary;
    if (failed(DispatchBuilder(alone, auxiliary, maxOps).build()))
      return failure();
    copy->erase();
  }
  return success();
}

/// Erases unused ops of the block, the last first.
static void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

namespace {
struct FormDispatchesPass : fsdp::impl::FormDispatchesPassBase<FormDispatchesPass> {
  using FormDispatchesPassBase::FormDispatchesPassBase;

  LogicalResult formIn(Block &block) {
    if (failed(wrapLoose(block, maxOps)))
      return failure();
    ClusterBuilder builder(block, window, maxOps);
    for (const OpCluster &cluster : builder.getClusters()) {
      if (failed(DispatchBuilder(cluster, builder.getAuxiliaryOps(), maxOps).build()))
        return failure();
      ++numDispatches;
      numGrouped += cluster.members.size() > 1 ? cluster.members.size() : 0;
    }
    restoreOrder(block.without_terminator());
    eraseDead(block);
    return success();
  }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    // Inner blocks first, because ops of outer blocks die that only they read.
    SmallVector<Block *> blocks;
    func.walk([&](scf::ForOp loop) { blocks.push_back(loop.getBody()); });
    blocks.push_back(&func.getBody().front());
    for (Block *block : blocks)
      if (failed(formIn(*block)))
        return signalPassFailure();
  }
};
} // namespace
