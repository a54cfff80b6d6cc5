//===- RepeatedGathers.cpp - Units that a block gathers twice ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %c = call @convert(%shard)               %c = call @convert(%shard)
//   %w = unshard %c @h.0 site 0              %w = unshard %c @h.0 site 0
//   ...                              =>      ...
//   %d = call @convert(%shard)               (erased)
//   %v = unshard %d @h.0 site 1              (erased)
//   %g = call @k.grad(%a, %v)                %g = call @k.grad(%a, %w)
//
// 1. Find two gathers of the same unit that have the same source, or whose sources are results of
//    the same kernel on equal operands.
// 2. Let the readers of the second gather read the result of the first gather. Erase the second
//    gather, and kernel calls whose results are then unused.
//
// Both gathers have equal results, because shards change only after the backward. Takes O(gathers²)
// time. A gather in a later loop is not compared with gathers outside the loop. A gather over fewer
// ranks than the gather of the forward is not compared either, because the sources of the two
// gathers are different pieces of the parameters.
//
//===----------------------------------------------------------------------===//

#include "RepeatedGathers.h"
#include "fsdp/IR/Kernels.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns true if `a` and `b` are the same value, or results of two calls of the same kernel on
/// equal operands.
static bool isSame(Value a, Value b) {
  if (a == b)
    return true;
  auto first = a.getDefiningOp<KernelCallOp>(), second = b.getDefiningOp<KernelCallOp>();
  if (!first || !second || first.getKernelAttr() != second.getKernelAttr() ||
      a.getType() != b.getType() ||
      cast<OpResult>(a).getResultNumber() != cast<OpResult>(b).getResultNumber() ||
      first.getInputs().size() != second.getInputs().size())
    return false;
  auto isWritten = [](int64_t operand) { return operand >= 0; };
  if (llvm::any_of(first.getInplace(), isWritten) || llvm::any_of(second.getInplace(), isWritten))
    return false;
  return llvm::all_of(llvm::zip_equal(first.getInputs(), second.getInputs()),
                      [](auto pair) { return isSame(std::get<0>(pair), std::get<1>(pair)); });
}

SmallVector<RepeatedGather> fsdp::findRepeatedGathers(Block &block) {
  SmallVector<RepeatedGather> found;
  llvm::MapVector<Attribute, UnshardOp> firsts;
  for (auto unshard : block.getOps<UnshardOp>()) {
    UnshardOp &first = firsts[unshard.getUnitAttr()];
    if (first && first.getSite() < unshard.getSite() &&
        first->getResultTypes() == unshard->getResultTypes() &&
        isSame(first.getShard(), unshard.getShard()))
      found.push_back({first, unshard});
    else if (!first)
      first = unshard;
  }
  llvm::sort(found, [](const RepeatedGather &a, const RepeatedGather &b) {
    return UnshardOp(a.first)->isBeforeInBlock(b.first);
  });
  return found;
}

/// Erases `op`, and then each kernel call whose results are unused because of this.
static void eraseDead(Operation *op) {
  SmallVector<Value> operands = llvm::to_vector(op->getOperands());
  op->erase();
  for (Value operand : operands)
    if (auto call = operand.getDefiningOp<KernelCallOp>(); call && call->use_empty())
      eraseDead(call);
}

void fsdp::keepGathers(Block &block, const llvm::BitVector &kept) {
  SmallVector<RepeatedGather> gathers = findRepeatedGathers(block);
  for (unsigned number : kept.set_bits()) {
    RepeatedGather &gather = gathers[number];
    gather.again->replaceAllUsesWith(gather.first->getResults());
    eraseDead(gather.again);
  }
}
