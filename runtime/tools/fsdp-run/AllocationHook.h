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

#include <cstddef>
#include <cstdint>

namespace fsdprt {

void countAllocations(bool on);
uint64_t countedAllocations();
/// Size of the first one counted, and the instruction behind its call (for addr2line).
size_t firstAllocationSize();
const void *firstAllocationPlace();

} // namespace fsdprt

#endif // FSDP_RUN_ALLOCATIONHOOK_H
