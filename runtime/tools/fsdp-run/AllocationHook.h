//===- AllocationHook.h - A count of allocations ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Proof that a step allocates nothing: every call of malloc and its kin in the
// process, by whatever library and thread, is counted while counting is on.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_ALLOCATIONHOOK_H
#define FSDP_RUN_ALLOCATIONHOOK_H

#include "train/TrainingObserver.h"

namespace fsdprt {

void countAllocations(bool on);
uint64_t countedAllocations();
/// Size of the first one counted, and the instruction after its call (for addr2line).
size_t firstAllocationSize();
const void *firstAllocationPlace();

/// Fails a run in which a step allocated memory; saves may.
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
