//===- RepeatRows.cpp - Gather rows again for the backward ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   forward    %a = all_gather %n over tensor     %y = %a · %w
//   backward   w̄ = %aᵀ · ȳ
//   after      %b = all_gather %n over tensor     w̄ = %bᵀ · ȳ       %n is saved, 1/T of %a
//
//  1. Find the values of the forward that are gathered rows, or views and copies of them. The
//     rank's own rows of a random tensor (DropMarkers.cpp) belong to them too: it is cheaper to
//     draw the numbers again.
//  2. If the backward reads such a value, clone the ops from the gather to this value once, before
//     their first reader.
//
// O(ops).
//
//===----------------------------------------------------------------------===//

#include "RepeatRows.h"
#include "Adjoints.h"
#include "ForwardPart.h"
#include "fsdp/IR/TensorSplit.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fsdp;

static bool isReshape(Operation *op) {
  return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

bool fsdp::movesElements(Operation *op) {
  auto copy = dyn_cast<linalg::GenericOp>(op);
  return isReshape(op) ||
         (copy && copy.getNumDpsInputs() == 1 && copy.getBody()->without_terminator().empty());
}

/// Returns true if `op` picks the rank's own part of a random tensor.
static bool picksRandom(Operation *op) {
  auto pick = dyn_cast<linalg::GenericOp>(op);
  if (!pick || pick.getNumDpsInputs() != 2 ||
      pick.getDpsInputs()[1] != findCoordinate(op, tensorAxis))
    return false;
  Operation *source = pick.getDpsInputs()[0].getDefiningOp();
  while (isReshape(source))
    source = source->getOperand(0).getDefiningOp();
  return isa_and_nonnull<RandomOp>(source);
}

/// Returns the gathered rows of the forward, and the views and copies of them.
static DenseSet<Value> findGathered(func::FuncOp func, const ForwardPart &forward) {
  DenseSet<Value> gathered;
  for (Operation &op : func.getBody().front()) {
    auto gather = dyn_cast<AllGatherOp>(op);
    if (forward.contains(&op) && ((gather && isOverTensor(gather.getAxes())) || picksRandom(&op) ||
                                  (movesElements(&op) && gathered.contains(op.getOperand(0)))))
      gathered.insert(op.getResult(0));
  }
  return gathered;
}

int64_t fsdp::repeatRows(func::FuncOp func) {
  ForwardPart forward(func);
  DenseSet<Value> gathered = findGathered(func, forward);
  if (gathered.empty())
    return 0;
  int64_t count = 0;
  IRMapping again;
  auto repeat = [&](auto &self, Value value, OpBuilder &b) -> Value {
    if (!gathered.contains(value) || again.contains(value))
      return again.lookupOrDefault(value);
    Operation *def = value.getDefiningOp();
    again.map(def->getOperand(0), self(self, def->getOperand(0), b));
    Operation *copy = b.clone(*def, again);
    if (!isReshape(copy))
      copy->setAttr(FSDPDialect::recomputeAttr, b.getUnitAttr());
    count += isa<AllGatherOp>(copy);
    return again.lookup(value);
  };
  for (Operation &op : llvm::make_early_inc_range(func.getBody().front().without_terminator())) {
    if (forward.contains(&op))
      continue;
    OpBuilder b(&op);
    for (OpOperand &operand : op.getOpOperands())
      if (gathered.contains(operand.get()))
        operand.set(repeat(repeat, operand.get(), b));
  }
  return count;
}
