//===- MemoryLimits.h - Available memory ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads how much memory a process can still allocate: the free memory of the machine, the limits of
// the process's control group and of its parent groups, and the limit of address space. A run that
// would exceed a limit fails before it allocates memory, because the kernel would kill it later.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_MEMORYLIMITS_H
#define FSDPRT_CORE_MEMORYLIMITS_H

#include <cstdint>
#include <string>

namespace fsdprt {

struct MemoryLeft {
  uint64_t bytes; ///< UINT64_MAX if unknown
  /// Text that precedes the number of bytes in messages, for example "the machine has".
  std::string says;
};

/// Returns how many bytes this process may still allocate: the least of the machine's free memory
/// and the bytes that remain below the limit of each control group. The paths of the system files
/// that are read begin with `root`.
MemoryLeft memoryLeft(const std::string &root = "");

/// Returns the number of bytes that this process may still map, or UINT64_MAX if RLIMIT_AS sets no
/// limit.
uint64_t addressSpaceLeft();
/// Returns the size in bytes of the address space for the stack of a new thread.
uint64_t threadStackBytes();

/// Returns the size in bytes of the private writable mappings of this process (VmData), or 0 if the
/// size is unknown. These mappings are the heap, thread stacks, and arenas that are not shared with
/// other processes, including their pages that are not resident. Allocates no memory.
uint64_t privateBytes();

/// Returns the largest number of bytes of this process that were resident at the same time since
/// its last exec() (VmHWM), or 0 if this number is unknown.
uint64_t peakResidentBytes();

} // namespace fsdprt

#endif // FSDPRT_CORE_MEMORYLIMITS_H
