//===- MemoryFit.h - Check that a plan fits the machine ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Before a session allocates memory, checks that its arenas and an estimate of the other memory of
// its processes fit in the available memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_MEMORYFIT_H
#define FSDPRT_EXECUTE_MEMORYFIT_H

#include "artifact/Artifact.h"

namespace fsdprt {

/// Sizes and counts from which checkFits() computes the memory that a session needs.
struct MemoryDemand {
  uint64_t arena = 0, reference = 0; ///< bytes: arenas of one rank; arenas of the reference
  uint64_t ranksOnMachine = 1;       ///< number of ranks on this machine
  uint64_t ranksMapped = 1;          ///< number of ranks whose arenas this process maps
  uint64_t processes = 1;            ///< number of processes of the run on this machine
  uint64_t threads = 1;              ///< number of threads of this process
};

/// Throws Error if the address space of the process, the memory of the machine, or the memory limit
/// of a control group is too small.
void checkFits(const Artifact &artifact, const MemoryDemand &demand);

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_MEMORYFIT_H
