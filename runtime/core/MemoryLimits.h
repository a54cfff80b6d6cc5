//===- MemoryLimits.h - How much memory is left -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a process can still get: free memory of the machine, the limits of its control group and of
// all groups above it, and its own limit of address space. A plan that does not fit is refused with
// these before memory is taken, since who runs into such a limit later is killed without a word.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_MEMORYLIMITS_H
#define FSDPRT_CORE_MEMORYLIMITS_H

#include <cstdint>
#include <string>

namespace fsdprt {

struct MemoryLeft {
  uint64_t bytes;   ///< UINT64_MAX: nothing is known
  std::string says; ///< "the machine has", "the control group /a/b (memory.max of 1.0 GiB) leaves"
};

/// The least of what the machine has and its control groups leave. Files are looked for below
/// `root`.
MemoryLeft memoryLeft(const std::string &root = "");

/// Bytes that this process may still map (RLIMIT_AS); UINT64_MAX: no limit.
uint64_t addressSpaceLeft();
/// Bytes that a new thread takes of it.
uint64_t threadStackBytes();

/// Bytes that this process maps for itself to write to: heap, stacks of threads, arenas that no
/// other process maps. What is mapped grows when something asks for memory; which pages of it are
/// resident is chance. Allocates nothing. 0: the system does not tell.
uint64_t privateBytes();

/// Most bytes of this process that were resident at one moment, since its program began; what was
/// resident before an `exec` does not count. 0: the system does not tell.
uint64_t peakResidentBytes();

} // namespace fsdprt

#endif // FSDPRT_CORE_MEMORYLIMITS_H
