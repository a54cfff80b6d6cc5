//===- BlockOrder.cpp - Blocks of threads on multiprocessors ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. A block of threads begins as soon as a slot is free.
// 2. The steps of a block run one after another. A block has only one buffer for values that are to
//    be added. A step therefore copies its values to the buffer only after the previous addition of
//    the block has ended.
// 3. An addition begins when its values are in the buffer and the previous addition to the same sum
//    has ended.
// 4. The last step of a sum loads it as soon as the buffer is free and the previous addition to the
//    sum has ended. The step ends only after the load.
//
// Blocks are simulated in ascending order. For each addition, the blocks that make the previous
// additions to the same sum must therefore have been simulated already. The time is O(steps +
// blocks log slots).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Gpu/BlockOrder.h"

using namespace mlir::fsdp;

BlockScheduler::BlockScheduler(int64_t slots, double addCycles, double loadCycles)
    : slots(slots), addCycles(addCycles), loadCycles(loadCycles) {
  for (int64_t i = 0; i < slots; ++i)
    free.push(0);
}

bool BlockScheduler::add(llvm::ArrayRef<BlockStep> steps) {
  // `now` and `added` are times that include waits for other blocks. `alone` and `addedAlone` are
  // the times since `begin` without such waits.
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
    if (step.isLast) {
      double load = step.before > 0 ? loadCycles : 0;
      now = added = std::max(now, std::max(added, sum.end) + load);
      alone = addedAlone = std::max(alone, addedAlone + load);
      continue;
    }
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
