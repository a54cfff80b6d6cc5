//===- MemoryLimits.h - Available memory ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Limits of what a process can still allocate: free memory of the machine, limits of its control
// group and of all groups above it, and its limit of address space. A run that does not fit is
// refused before it allocates, because the kernel kills processes that run into such limits later.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_MEMORYLIMITS_H
#define FSDPRT_CORE_MEMORYLIMITS_H

#include <cstdint>
#include <string>

namespace fsdprt {

struct MemoryLeft {
  uint64_t bytes;   ///< UINT64_MAX: unknown
  std::string says; ///< "the machine has", "the control group /a/b (memory.max of 1.0 GiB) leaves"
};

/// Returns the smallest of what the machine has free and what its control groups leave. System
/// files are read below `root`.
MemoryLeft memoryLeft(const std::string &root = "");
/// Returns the bytes that this process may still map (RLIMIT_AS); UINT64_MAX: no limit.

/// Bytes that this process may still map (RLIMIT_AS); UINT64_MAX: no limit.
uint64_t addressSpaceLeft();
/// Returns the bytes of address space that a new thread's stack takes.
uint64_t threadStackBytes();

/// Returns the bytes that this process has mapped privately and writable (VmData): heap, thread
/// stacks, and arenas not shared with other processes. The number does not depend on which pages
/// are resident. Allocates nothing. 0: unknown.
uint64_t privateBytes();

/// Returns the peak resident bytes of this process since its program began (VmHWM); memory from
/// before an `exec` does not count. 0: unknown.
uint64_t peakResidentBytes();

} // namespace fsdprt

#endif // FSDPRT_CORE_MEMORYLIMITS_H
