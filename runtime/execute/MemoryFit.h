//===- MemoryFit.h - Check that a plan fits the machine ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Before any memory is allocated, compares the planned arenas, and what a process needs besides
// them, with the available memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_MEMORYFIT_H
#define FSDPRT_EXECUTE_MEMORYFIT_H

#include "artifact/Artifact.h"

namespace fsdprt {

/// Memory that a session needs, in bytes and counts.
struct MemoryDemand {
  uint64_t arena = 0, reference = 0; ///< of a rank; of the reference, in this process only
  uint64_t ranksOnMachine = 1;       ///< number of arenas on this machine
  uint64_t ranksMapped = 1;          ///< number of arenas that this process maps
  uint64_t processes = 1;            ///< on this machine, with these ranks
  uint64_t threads = 1;              ///< of this process
};

/// Throws Error if memory (of the machine or of a control group) or address space does not suffice.
void checkFits(const Artifact &artifact, const MemoryDemand &demand);

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_MEMORYFIT_H
