//===- SinkToUses.cpp - Move ops to their first use -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Earlier stages place an op where its operands first become available. Without this pass, the
// recomputed values and the gathered parameters of all layers would therefore be alive from the
// beginning of the backward.
//
//   %w1 = unshard @h.1        %w1 = unshard @h.1
//   %w0 = unshard @h.0   =>   use(%w1)
//   use(%w1)                  %w0 = unshard @h.0
//   use(%w0)                  use(%w0)
//
// Visits the ops from the last to the first, so that the users of an op are in their final places
// before the op is visited:
//  1. The limit of an op is the first later op that uses a result of the op, or that overwrites an
//     operand of the op in place. (An op that overwrites an operand in place must remain after all
//     other readers of the operand.)
//  2. The gain is the number of bytes of the op's results times the distance from the op to the
//     limit. The gain is 0 for gradients, because a gradient is a range of a flat buffer. The price
//     is a sum over those operands whose last reader is this op: the bytes of the operand times the
//     distance by which its lifetime would grow. Arguments cost nothing.
//  3. Move the op to the place directly before the limit if the gain exceeds the price. Views
//     always move. So do casts of gradients that were added over ranks (UnitSums.cpp).
//
// Only kernel calls, gathers and views move. All other collectives keep their order. Distances are
// measured in the original order of the block and are not updated after a move. The pass therefore
// takes O(ops + uses).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Aliasing.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/Plan/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_SINKTOUSESPASS
#include "fsdp/Plan/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static int64_t getBytes(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? getStorageBytes(type) : 0;
}

namespace {

/// Sinks the ops of one block.
class Sinker {
public:
  Sinker(Block &block, Aliasing &aliasing) : block(block), aliasing(aliasing) {}

  unsigned run() {
    SmallVector<Operation *> ops;
    for (Operation &op : block) {
      places[&op] = ops.size();
      ops.push_back(&op);
    }
    setKeys();
    unsigned moved = 0;
    for (Operation *op : llvm::reverse(ops)) {
      bool isView = static_cast<bool>(aliasing.getViewSource(op));
      if (!isView && !isa<KernelCallOp, UnshardOp>(op))
        continue;
      Operation *limit = findLimit(op);
      if (!limit || limit == op->getNextNode() ||
          (!isView && !castsSum(op) && !gains(op, places.at(limit))))
        continue;
      moveBefore(op, limit);
      places[op] = places.at(limit);
      moved += !isView;
    }
    return moved;
  }

private:
  /// Returns the op of this block that is or contains `user`.
  Operation *getAncestor(Operation *user) { return block.findAncestorOpInBlock(*user); }

  bool isBefore(Operation *a, Operation *b) { return !b || keys.at(a) < keys.at(b); }

  /// Sets the keys of all ops to multiples of 2^40.
  void setKeys() {
    for (auto [number, op] : llvm::enumerate(block))
      keys[&op] = static_cast<uint64_t>(number + 1) << 40;
  }

  /// Moves `op`, and gives it a key between those of its new neighbours. Operation::isBeforeInBlock
  /// would number the whole block again after each move.
  void moveBefore(Operation *op, Operation *limit) {
    op->moveBefore(limit);
    uint64_t end = keys.at(limit), begin = 0;
    if (Operation *previous = op->getPrevNode())
      begin = keys.at(previous);
    keys[op] = begin + (end - begin) / 2;
    if (end - begin < 2)
      setKeys();
  }

  /// Collects `base` and all views of it.
  void collectViews(Value base, SmallVectorImpl<Value> &views) {
    views.push_back(base);
    for (Operation *user : base.getUsers())
      if (aliasing.getViewSource(user) == base)
        for (Value view : user->getResults())
          collectViews(view, views);
  }

  /// Finds the limit of an op (step 1). Returns null if the op has no limit in this block.
  Operation *findLimit(Operation *op) {
    Operation *limit = nullptr;
    for (Operation *user : op->getUsers())
      if (Operation *here = getAncestor(user); here && isBefore(here, limit))
        limit = here;
    for (Value operand : op->getOperands()) {
      if (!isa<RankedTensorType>(operand.getType()))
        continue;
      SmallVector<Value> views;
      collectViews(aliasing.getBase(operand), views);
      for (Value view : views)
        for (Operation *user : view.getUsers()) {
          Operation *here = getAncestor(user);
          bool isLater = here && here != op && isBefore(op, here);
          if (isLater && overwrites(user, view) && isBefore(here, limit))
            limit = here;
        }
    }
    return limit;
  }

  /// Returns true if `user` overwrites the memory of `value`.
  static bool overwrites(Operation *user, Value value) {
    // A loop may accumulate into the memory of `value` if `value` is the initial value of a sum
    // that the loop carries.
    if (isa<scf::ForOp>(user))
      return true;
    auto call = dyn_cast<KernelCallOp>(user);
    return call && llvm::any_of(call.getInplace(), [&](int64_t operand) {
             return operand >= 0 && call.getInputs()[operand] == value;
           });
  }

  /// Returns true if `value` is read only by reduce-scatters. Then `value` is a range of a flat
  /// buffer, and the lifetime of this buffer begins with the first gradient that is in it.
  bool isGradient(Value value) {
    return llvm::all_of(value.getUsers(), [&](Operation *user) {
      // A kernel call may add to `value` in place, and the sum may be a gradient.
      if (auto call = dyn_cast<KernelCallOp>(user))
        return llvm::any_of(call.getResults(), [&](OpResult result) {
          int64_t operand = call.getInplace()[result.getResultNumber()];
          return operand >= 0 && call.getInputs()[operand] == value && isGradient(result);
        });
      return isa<ReduceScatterOp>(user) ||
             (aliasing.getViewSource(user) &&
              llvm::all_of(user->getResults(), [&](Value v) { return isGradient(v); }));
    });
  }

  /// Returns true if the op is a kernel that computes a gradient from one sum over ranks.
  bool castsSum(Operation *op) {
    auto call = dyn_cast<KernelCallOp>(op);
    return call && call.getInputs().size() == 1 && call->getNumResults() == 1 &&
           isGradient(call.getResult(0)) &&
           isa_and_nonnull<AllReduceOp>(aliasing.getBase(call.getInputs()[0]).getDefiningOp());
  }

  /// Returns true if the gain of moving `op` to `limit` exceeds the price (step 2).
  bool gains(Operation *op, int64_t limit) {
    int64_t here = places.at(op), balance = 0;
    auto call = dyn_cast<KernelCallOp>(op);
    for (OpResult result : op->getResults())
      if ((!call || call.getInplace()[result.getResultNumber()] < 0) && !isGradient(result))
        balance += getBytes(result) * (limit - here);
    llvm::SmallDenseSet<Value> counted;
    for (Value operand : op->getOperands()) {
      Value base = aliasing.getBase(operand);
      bool isLocal = base.getDefiningOp() && base.getDefiningOp()->getBlock() == &block;
      if (!isLocal)
        continue;
      // All parameters of a unit have the same lifetime: the lifetime of the gathered buffer.
      ValueRange group =
          base.getDefiningOp<UnshardOp>() ? base.getDefiningOp()->getResults() : ValueRange(base);
      if (!counted.insert(group.front()).second)
        continue;
      int64_t last = here, bytes = 0;
      for (Value member : group) {
        bytes += getBytes(member);
        last = std::max(last, findLastReader(member, op));
      }
      balance -= bytes * std::max<int64_t>(0, limit - last);
    }
    return balance > 0;
  }

  /// Returns the position of the last op, other than `op`, that reads `base` or a view of `base`.
  int64_t findLastReader(Value base, Operation *op) {
    SmallVector<Value> views;
    collectViews(base, views);
    int64_t last = -1;
    for (Value view : views)
      for (Operation *user : view.getUsers())
        if (Operation *here = getAncestor(user); here && here != op)
          last = std::max(last, places.at(here));
    return last;
  }

  Block &block;
  Aliasing &aliasing;
  DenseMap<Operation *, int64_t> places;
  DenseMap<Operation *, uint64_t> keys; ///< increase from op to op of the block
};

class SinkToUsesPass : public fsdp::impl::SinkToUsesPassBase<SinkToUsesPass> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(FSDPDialect::programAttr))
      return;
    Aliasing aliasing(getOperation());
    SmallVector<Block *> blocks{&getOperation().getBody().front()};
    getOperation().walk([&](scf::ForOp loop) { blocks.push_back(loop.getBody()); });
    for (Block *block : blocks)
      numMoved += Sinker(*block, aliasing).run();
  }
};

} // namespace
