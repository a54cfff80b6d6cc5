//===- AllocationHook.h - Counting allocations ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks that steps allocate no memory. After countAllocations(true), all calls of malloc() and
// related functions are counted, in all libraries and threads of the process.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_ALLOCATIONHOOK_H
#define FSDP_RUN_ALLOCATIONHOOK_H

#include "train/TrainingObserver.h"

namespace fsdprt {

void countAllocations(bool on);
uint64_t countedAllocations();
/// firstAllocationSize() returns the size in bytes of the first counted allocation, and
/// firstAllocationPlace() returns the address of the code after the call, for addr2line.
size_t firstAllocationSize();
const void *firstAllocationPlace();

/// After the steps, throws Error if a step has allocated memory. Saves may allocate memory.
class AllocationCheck final : public TrainingObserver {
public:
  void beforeSteps() override { countAllocations(inSteps = true); }
  void beforeSave() override { countAllocations(false); }
  void afterSave() override { countAllocations(inSteps); }
  void afterSteps() override { countAllocations(inSteps = false); }
  void afterRun(const TrainingRun &run) override;

private:
  bool inSteps = false;
};

} // namespace fsdprt

#endif // FSDP_RUN_ALLOCATIONHOOK_H
