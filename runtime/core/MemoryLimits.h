//===- MemoryLimits.h - Available memory ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Limits of the memory that a process can still allocate: free memory of the machine, limits of its
// control group and of all parent groups, and its limit of address space. A run that exceeds a
// limit is refused before it allocates, because the kernel would kill its processes later.
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

/// Returns the smallest of the machine's free memory and the memory that each control group leaves.
/// System files are read below `root`.
MemoryLeft memoryLeft(const std::string &root = "");

/// Returns the bytes that this process may still map (RLIMIT_AS), or UINT64_MAX without a limit.
uint64_t addressSpaceLeft();
/// Returns the bytes of address space that a new thread's stack takes.
uint64_t threadStackBytes();

/// Returns the bytes that this process has mapped privately and writable (VmData), or 0 if unknown:
/// heap, thread stacks, and arenas that are not shared with other processes. The number does not
/// depend on which pages are resident. Allocates no memory.
uint64_t privateBytes();

/// Returns the peak resident bytes of this process since its program began (VmHWM), or 0 if
/// unknown. Memory from before an `exec` does not count.
uint64_t peakResidentBytes();

} // namespace fsdprt

#endif // FSDPRT_CORE_MEMORYLIMITS_H
