//===- AllocationCount.h - Allocations that do not count --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Excludes some allocations of memory from the count of `fsdp-run --assert-no-allocations`. Saves
// may allocate memory, even in a separate thread while steps run.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_ALLOCATIONCOUNT_H
#define FSDPRT_CORE_ALLOCATIONCOUNT_H

namespace fsdprt {

inline thread_local bool areAllocationsUncounted = false;

/// Excludes the allocations of a thread from the count while the object exists.
class UncountedAllocations {
public:
  UncountedAllocations() { areAllocationsUncounted = true; }
  ~UncountedAllocations() { areAllocationsUncounted = before; }
  UncountedAllocations(const UncountedAllocations &) = delete;
  UncountedAllocations &operator=(const UncountedAllocations &) = delete;

private:
  bool before = areAllocationsUncounted;
};

} // namespace fsdprt

#endif // FSDPRT_CORE_ALLOCATIONCOUNT_H
