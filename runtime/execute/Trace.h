//===- Trace.h - When each command ran --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A ring of the last runs of a program, for each rank: begin and end of every command in the order
// of execution, 40 bytes each, all made before the first run. What they were is looked up when it
// is asked for. On a GPU times are the GPU's (DeviceTimes.cpp).
//
//     compute  |launch|launch| start |launch|  wait  |launch|
//     gather                 [in flight     |..waited]
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_TRACE_H
#define FSDPRT_EXECUTE_TRACE_H

#include "collectives/Communicator.h"
#include "execute/Instruction.h"
#include "fsdprt/fsdprt.h"
#include <functional>
#include <vector>

namespace fsdprt {

class Trace {
public:
  /// Of ranks [firstRank, firstRank + ranks) and their last `runs` runs. The manifest and the
  /// instructions have to outlive it.
  Trace(const fb::Manifest &manifest, const std::vector<Instruction> &instructions,
        uint32_t firstRank, uint32_t ranks, uint32_t runs);

  /// Each rank calls these for itself.
  void begin(uint32_t rank) {
    Ring &ring = rings[rank - firstRank];
    ring.next = ring.began++ % keptRuns * eventsPerRun;
    ring.end = ring.next + eventsPerRun;
  }
  /// Of a wait for what a transfer worker moved: when that was.
  void add(uint32_t rank, size_t instruction, uint64_t begin, uint64_t end, uint64_t movedFrom = 0,
           uint64_t movedTo = 0) {
    Ring &ring = rings[rank - firstRank];
    if (ring.next < ring.end)
      ring.records[ring.next++] = {begin, end, movedFrom, movedTo,
                                   static_cast<uint32_t>(instruction)};
  }

  /// Of a run whose times are stamps of a GPU, which 0 is none of: replaces them.
  void resolve(uint32_t rank, const std::function<uint64_t(uint64_t)> &timeOf);
  /// How many such a run has at most: two for a command, and two for a transfer.
  static uint64_t stampsOf(const std::vector<Instruction> &instructions);

  /// All processes call it, each with one rank: that of rank 0 has the others' rings then.
  void collect(Communicator &communicator);

  uint64_t bytes() const { return rings.size() * keptRuns * eventsPerRun * sizeof(Record); }
  /// Rank by rank, run by run, in the order of execution, but a collective in flight at its wait.
  /// Ends when `visit` returns false.
  void visit(const std::function<bool(const fsdprt_trace_event &)> &visit) const;

private:
  struct Record {
    uint64_t begin, end, movedFrom, movedTo;
    uint32_t instruction;
  };
  struct alignas(64) Ring {
    std::vector<Record> records;
    uint64_t began = 0, next = 0, end = 0; // runs; places in records
  };
  bool visitRun(uint32_t rank, uint64_t run, const Record *at, const Record *end,
                const std::function<bool(const fsdprt_trace_event &)> &visit) const;

  const fb::Manifest &manifest;
  const std::vector<Instruction> &instructions;
  uint32_t firstRank;
  uint64_t keptRuns, eventsPerRun;
  std::vector<Ring> rings;
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_TRACE_H
