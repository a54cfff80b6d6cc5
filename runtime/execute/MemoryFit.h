//===- MemoryFit.h - Check that a plan fits the machine ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Before a session allocates memory, compares the available memory with the size of its arenas plus
// an estimate of all other memory of the process.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_MEMORYFIT_H
#define FSDPRT_EXECUTE_MEMORYFIT_H

#include "artifact/Artifact.h"

namespace fsdprt {

/// Numbers from which the memory that a session needs is computed.
struct MemoryDemand {
  uint64_t arena = 0, reference = 0; ///< arena sizes in bytes: of a rank, of the reference
  uint64_t ranksOnMachine = 1;       ///< number of arenas on this machine
  uint64_t ranksMapped = 1;          ///< number of arenas that this process maps
  uint64_t processes = 1;            ///< number of processes of the run on this machine
  uint64_t threads = 1;              ///< number of threads of this process
};

/// Throws Error if the address space of the process, the memory of the machine, or the memory limit
/// of a control group is too small.
void checkFits(const Artifact &artifact, const MemoryDemand &demand);

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_MEMORYFIT_H
