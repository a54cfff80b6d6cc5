//===- MemoryLimits.h - Available memory ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads how much memory a process can still allocate: the free memory of the machine, the limits of
// the process's control group and of its parent groups, and the limit of address space. A run that
// exceeds a limit fails before it allocates memory, because the kernel would kill it later.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_MEMORYLIMITS_H
#define FSDPRT_CORE_MEMORYLIMITS_H

#include <cstdint>
#include <string>

namespace fsdprt {

struct MemoryLeft {
  uint64_t bytes;   ///< UINT64_MAX if unknown
  std::string says; ///< text such as "the machine has" or "the control group /a/b (...) leaves"
};

/// Returns the minimum of the machine's free memory and of the memory that each control group
/// leaves. Reads system files in the folder `root`.
MemoryLeft memoryLeft(const std::string &root = "");

/// Returns how many bytes this process may still map (RLIMIT_AS), or UINT64_MAX if there is no
/// limit.
uint64_t addressSpaceLeft();
/// Returns how many bytes of address space the stack of a new thread uses.
uint64_t threadStackBytes();

/// Returns how many bytes this process has in private writable mappings (VmData), or 0 if unknown.
/// Such mappings are the heap, thread stacks, and arenas that are not shared with other processes.
/// Pages count even if they are not resident. Allocates no memory.
uint64_t privateBytes();

/// Returns the largest number of resident bytes of this process since its last exec() (VmHWM), or 0
/// if unknown.
uint64_t peakResidentBytes();

} // namespace fsdprt

#endif // FSDPRT_CORE_MEMORYLIMITS_H
