//===- Shadow.h - State of the bytes of a rank ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An interval map over the offsets of a layout. Each cell records whether its bytes were written
// since their buffer began to live, the last write, and later reads by transfers. Cells are split
// where accesses begin and end, and merged when one access writes all of them. The number of cells
// thus follows the number of commands, not of bytes.
//
// An epoch, a count on a stream, is the time of an access. A clock holds for each stream the last
// epoch that is known to be over. An access races with an earlier one whose epoch its clock does
// not cover, if one of the two writes.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_NULL_SHADOW_H
#define FSDPRT_NULL_SHADOW_H

#include "fsdprt/artifact_generated.h"
#include <map>
#include <vector>

namespace fsdprt {

/// Stream 0 computes. Each transfer in flight, a collective or a copy, has a stream of its own.
struct Epoch {
  uint32_t stream = 0, time = 0;
};

class Clock {
public:
  bool knows(Epoch epoch) const {
    return epoch.time <= (epoch.stream < times.size() ? times[epoch.stream] : 0);
  }
  void learn(Epoch epoch) {
    if (epoch.stream >= times.size())
      times.resize(epoch.stream + 1, 0);
    times[epoch.stream] = std::max(times[epoch.stream], epoch.time);
  }

private:
  std::vector<uint32_t> times;
};

/// A command in a run of a program. Without a command: the host, before or after that run.
struct Moment {
  const fb::Command *command = nullptr;
  uint32_t run = 0, number = 0, iteration = 0;
};

/// An access of the past.
struct Touch {
  Epoch epoch;
  Moment moment;
};

struct Cell {
  enum State : uint8_t {
    unwritten,
    ended,
    written
  }; // ended: written by an earlier buffer at this place
  State state = unwritten;
  Touch write;              // the last one; time 0 if there is none
  std::vector<Touch> reads; // by transfers, since the last write
};

class Shadow {
public:
  /// Covers [0, end).
  explicit Shadow(uint64_t end) : cells{{0, Cell()}, {end, Cell()}} {}

  /// Calls visit(begin, end, cell) for the cells of [begin, end), in order.
  template <typename Visit>
  void visit(uint64_t begin, uint64_t end, Visit visit) {
    if (begin >= end)
      return;
    auto last = cut(end), at = cut(begin);
    for (; at != last;) {
      auto next = std::next(at);
      visit(at->first, next->first, at->second);
      at = next;
    }
  }
  /// Records a write of [begin, end), as one cell.
  void write(uint64_t begin, uint64_t end, const Touch &touch);
  /// Marks the values in [begin, end) as dead. Their accesses stay on record, since transfers may
  /// still be in flight.
  void end(uint64_t begin, uint64_t end);
  uint64_t size() const { return cells.rbegin()->first; }
  size_t numCells() const { return cells.size() - 1; }

private:
  std::map<uint64_t, Cell>::iterator cut(uint64_t at);

  std::map<uint64_t, Cell> cells; // by begin; the last one marks the end
};

} // namespace fsdprt

#endif // FSDPRT_NULL_SHADOW_H
