//===- BlockOrder.cpp - Blocks of threads on multiprocessors ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. A block of threads begins in the first slot that becomes free.
// 2. The steps of a block run one after another. A step that adds to a sum hands its values over
//    when the block's previous addition has ended, because a block has one buffer for such values.
// 3. An addition begins when its values are handed over and the previous addition to the same sum
//    has ended.
//
// Blocks are scheduled in ascending order, so the previous additions to a sum must be those of
// blocks that are already scheduled. O(steps + blocks log slots).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Gpu/BlockOrder.h"

using namespace mlir::fsdp;

BlockScheduler::BlockScheduler(int64_t slots, double addCycles)
    : slots(slots), addCycles(addCycles) {
  for (int64_t i = 0; i < slots; ++i)
    free.push(0);
}

bool BlockScheduler::add(llvm::ArrayRef<BlockStep> steps) {
  // `now` and `added` include waits for other blocks; `alone` and `addedAlone` do not.
  double begin = free.top(), now = begin, added = begin;
  double alone = 0, addedAlone = 0;
  free.pop();
  for (const BlockStep &step : steps) {
    now += step.cycles;
    alone += step.cycles;
    if (step.sum < 0)
      continue;
    if (static_cast<size_t>(step.sum) >= sums.size())
      sums.resize(step.sum + 1);
    Sum &sum = sums[step.sum];
    if (sum.added++ != step.before)
      return false;
    now = std::max(now, added);
    added = sum.end = std::max(now, sum.end) + addCycles;
    alone = std::max(alone, addedAlone);
    addedAlone = alone + addCycles;
  }
  now = std::max(now, added);
  alone = std::max(alone, addedAlone);
  free.push(now);
  last = std::max(last, now);
  work += alone;
  idle += now - begin - alone;
  return true;
}

double BlockScheduler::efficiency() const {
  return last > 0 ? work / (static_cast<double>(slots) * last) : 1;
}
