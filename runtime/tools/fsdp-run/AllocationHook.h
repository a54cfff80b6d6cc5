//===- AllocationHook.h - Counting allocations ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks that training steps allocate no memory. After countAllocations(true), all calls of
// malloc() and related functions are counted, in all libraries and threads of the process.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_ALLOCATIONHOOK_H
#define FSDP_RUN_ALLOCATIONHOOK_H

#include "train/TrainingObserver.h"

namespace fsdprt {

void countAllocations(bool on);
uint64_t countedAllocations();
/// These functions describe the first allocation that was counted. firstAllocationSize() returns
/// its size in bytes. firstAllocationPlace() returns the address of the code after the call, which
/// addr2line translates to a source location.
size_t firstAllocationSize();
const void *firstAllocationPlace();

/// Throws Error after the steps if a step has allocated memory. Allocations during a save are not
/// counted.
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
