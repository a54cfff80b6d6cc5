//===- Trace.h - Times of commands in the last runs -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each rank has a ring buffer with records of the last runs of a program. The buffer is allocated
// before the first run. A record of 40 bytes tells when an executed command began and ended.
// visit() creates events from the records. On a GPU, the GPU measures the times (CommandTimer.h).
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
  /// Keeps records of the last `runs` runs on ranks [firstRank, firstRank + ranks). `manifest` and
  /// `instructions` must outlive the trace.
  Trace(const fb::Manifest &manifest, const std::vector<Instruction> &instructions,
        uint32_t firstRank, uint32_t ranks, uint32_t runs);

  /// Starts a run. The thread of a rank calls begin() and add() with its own rank.
  void begin(uint32_t rank) {
    Ring &ring = rings[rank - firstRank];
    ring.next = ring.began++ % keptRuns * eventsPerRun;
    ring.end = ring.next + eventsPerRun;
  }
  /// Records a command. If the command is a wait, the transfer was executed from `movedFrom` to
  /// `movedTo`. These times are 0 if they were not measured.
  void add(uint32_t rank, size_t instruction, uint64_t begin, uint64_t end, uint64_t movedFrom = 0,
           uint64_t movedTo = 0) {
    Ring &ring = rings[rank - firstRank];
    if (ring.next < ring.end)
      ring.records[ring.next++] = {begin, end, movedFrom, movedTo,
                                   static_cast<uint32_t>(instruction)};
  }

  /// Replaces the indices of time stamps in the records of the last run by times. The index 0 means
  /// that no time stamp exists, and is not replaced.
  void resolve(uint32_t rank, const std::function<uint64_t(uint64_t)> &timeOf);
  /// Returns the number of time stamps in a run: two per command, and two more per transfer.
  static uint64_t stampsOf(const std::vector<Instruction> &instructions);

  /// Copies the ring buffers of all ranks to the process of rank 0. All processes must call
  /// collect(), and each process must contain exactly one rank.
  void collect(Communicator &communicator);

  uint64_t bytes() const { return rings.size() * keptRuns * eventsPerRun * sizeof(Record); }
  /// Calls `visit` for all events until `visit` returns false. Events are sorted by rank, then by
  /// run, then by execution order. The event of an asynchronous transfer precedes the event of its
  /// wait.
  void visit(const std::function<bool(const fsdprt_trace_event &)> &visit) const;

private:
  struct Record {
    uint64_t begin, end, movedFrom, movedTo;
    uint32_t instruction;
  };
  struct alignas(64) Ring {
    std::vector<Record> records;
    /// `began` is the number of started runs; `next` and `end` are positions in `records`.
    uint64_t began = 0, next = 0, end = 0;
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
