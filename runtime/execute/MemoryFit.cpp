//===- MemoryFit.cpp - Check that a plan fits the machine -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Besides arenas, a process needs page tables, memory for each thread, and tables and buffers of
// the runtime. Without huge pages, a page table has 8 bytes for each mapped page of 4 KiB. The code
// of the program and of its libraries is not counted, because this code already is in memory when
// the free memory is measured.
//
//===----------------------------------------------------------------------===//

#include "execute/MemoryFit.h"
#include "core/Error.h"
#include "core/MemoryLimits.h"

using namespace fsdprt;
using ull = unsigned long long;
using Wide = unsigned __int128; // Products of sizes may exceed 64 bits.

// Number of mapped bytes that need one byte of page tables.
static constexpr uint64_t bytesPerTableByte = 512;
static constexpr uint64_t bytesPerThread = uint64_t(256) << 10;
// Size of the runtime's tables and buffers.
static constexpr uint64_t bytesPerProcess = uint64_t(8) << 20;
static constexpr uint64_t alignment = uint64_t(2) << 20; // alignment of an arena in bytes

static uint64_t narrow(Wide bytes) {
  return bytes > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(bytes);
}

static Wide mappedBy(const MemoryDemand &demand) {
  return Wide(demand.arena) * demand.ranksMapped + demand.reference;
}

/// Returns a text such as "a.fsdp: the plan needs 2.0 GiB (... bytes) (2 ranks with 1.0 GiB each)".
static std::string planText(const Artifact &artifact, const char *of, Wide bytes, uint64_t ranks,
                            const MemoryDemand &demand) {
  return format("%s: the plan needs %s%s (%llu rank%s with %s each%s)", artifact.getFile().c_str(),
                bytesText(narrow(bytes)).c_str(), of, (ull)ranks, ranks == 1 ? "" : "s",
                bytesText(demand.arena).c_str(), demand.reference ? ", and the reference" : "");
}

static void checkMemory(const Artifact &artifact, const MemoryDemand &demand) {
  Wide arenas = Wide(demand.arena) * demand.ranksOnMachine + demand.reference;
  Wide beside = demand.processes * (mappedBy(demand) / bytesPerTableByte +
                                    demand.threads * bytesPerThread + bytesPerProcess);
  MemoryLeft left = memoryLeft();
  if (arenas + beside > left.bytes)
    failed("%s and about %s besides them, %s %s",
           planText(artifact, "", arenas, demand.ranksOnMachine, demand).c_str(),
           bytesText(narrow(beside)).c_str(), left.says.c_str(), bytesText(left.bytes).c_str());
}

/// Throws Error if the limit of this process's address space is too small for the arenas and the
/// stacks of threads. With the backend `shm`, a process maps the arenas of all processes.
static void checkAddressSpace(const Artifact &artifact, const MemoryDemand &demand) {
  uint64_t left = addressSpaceLeft();
  Wide beside =
      demand.threads * threadStackBytes() + demand.ranksMapped * alignment + bytesPerProcess;
  if (left != UINT64_MAX && mappedBy(demand) + beside > left)
    failed("%s and %s besides them, most of it for the stacks of %llu threads, the limit of this "
           "process (ulimit -v) leaves %s",
           planText(artifact, " of address space", mappedBy(demand), demand.ranksMapped, demand)
               .c_str(),
           bytesText(narrow(beside)).c_str(), (ull)demand.threads, bytesText(left).c_str());
}

void fsdprt::checkFits(const Artifact &artifact, const MemoryDemand &demand) {
  checkMemory(artifact, demand);
  checkAddressSpace(artifact, demand);
}
