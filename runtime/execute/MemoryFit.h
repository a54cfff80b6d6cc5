//===- MemoryFit.h - Whether a plan fits the machine ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The compiler has planned the arenas to the byte. Here they are compared, with what a process
// needs beside them, with what there is, before any of it is taken.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_MEMORYFIT_H
#define FSDPRT_EXECUTE_MEMORYFIT_H

#include "artifact/Artifact.h"

namespace fsdprt {

struct MemoryDemand {
  uint64_t arena = 0, reference = 0; ///< bytes; the reference's arena is this process's alone
  uint64_t ranksOnMachine = 1;       ///< each with an arena
  uint64_t ranksMapped = 1;          ///< whose arenas this process maps
  uint64_t processes = 1;            ///< of the machine, with these ranks
  uint64_t threads = 1;              ///< of this process
};

/// Throws Error when memory (of the machine or of a control group) or address space does not
/// suffice.
void checkFits(const Artifact &artifact, const MemoryDemand &demand);

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_MEMORYFIT_H
