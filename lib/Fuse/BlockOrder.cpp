//===- BlockOrder.cpp - Sort ops after their operands -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   a(c)  b  c  d(a)  e         =>      b  c  a(c)  d(a)  e
//
// 1. For each op of the range, count the ops of the range that the op or its regions use and that
// have no new
//    place yet.
// 2. Repeatedly place the op that was first in the original order among the ops whose count is 0.
//
// An op that must move is placed as early as possible. At the end of the range, the op would delay
// reductions over ranks that depend on it, and would lengthen the lifetimes of its operands.
// Takes O(ops log ops + uses) time.
//
//===----------------------------------------------------------------------===//

#include "BlockOrder.h"

#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/PriorityQueue.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

/// Returns the set of ops of `block` that `op` or its regions use.
static llvm::SmallSetVector<Operation *, 8> findUsed(Operation *op, Block &block) {
  llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
  if (op->getNumRegions())
    getUsedValuesDefinedAbove(op->getRegions(), values);
  llvm::SmallSetVector<Operation *, 8> used;
  for (Value value : values)
    if (Operation *def = value.getDefiningOp(); def && def->getBlock() == &block && def != op)
      used.insert(def);
  return used;
}

void mlir::fsdp::restoreOrder(llvm::iterator_range<Block::iterator> range) {
  SmallVector<Operation *> ops;
  DenseMap<Operation *, unsigned> numbers;
  for (Operation &op : range) {
    numbers[&op] = ops.size();
    ops.push_back(&op);
  }
  SmallVector<SmallVector<unsigned, 2>> users(ops.size());
  SmallVector<unsigned> open(ops.size());
  llvm::PriorityQueue<unsigned, std::vector<unsigned>, std::greater<unsigned>> ready;
  for (auto [number, op] : llvm::enumerate(ops)) {
    for (Operation *def : findUsed(op, *op->getBlock()))
      if (auto found = numbers.find(def); found != numbers.end()) {
        users[found->second].push_back(number);
        ++open[number];
      }
    if (open[number] == 0)
      ready.push(number);
  }
  auto append = [&](Operation *op) { op->moveBefore(op->getBlock(), range.end()); };
  while (!ready.empty()) {
    unsigned number = ready.top();
    ready.pop();
    append(std::exchange(ops[number], nullptr));
    for (unsigned user : users[number])
      if (--open[user] == 0)
        ready.push(user);
  }
  for (Operation *op : ops) // append the ops that depend on themselves
    if (op)
      append(op);
}
