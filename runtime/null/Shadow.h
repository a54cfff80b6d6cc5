//===- Shadow.h - State of the bytes of a rank ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares an interval map of the offsets of a layout. Each cell records the last write of its
// bytes, and the reads by transfers since this write. It also records whether the bytes were
// written during the lifetime of their buffer. A cell is split where an access begins or ends.
// Cells are merged when one access writes all of their bytes. The number of cells therefore depends
// on the number of commands, and not on the number of bytes.
//
// An epoch is the time of an access: a stream, and a count on this stream. For each stream, a clock
// contains the time of the last access that has ended. Two accesses race if at least one is a
// write, and if the clock at the later access does not cover the epoch of the earlier access.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_NULL_SHADOW_H
#define FSDPRT_NULL_SHADOW_H

#include "fsdprt/artifact_generated.h"
#include <map>
#include <vector>

namespace fsdprt {

/// The time of an access. Stream 0 is the compute stream. Each transfer (collective or copy) has
/// its own stream.
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

/// A command in a run of a program. If `command` is null, the host acts before or after the run.
struct Moment {
  const fb::Command *command = nullptr;
  uint32_t run = 0, number = 0, iteration = 0;
};

struct Touch {
  Epoch epoch;
  Moment moment;
};

struct Cell {
  /// In the state `ended`, the bytes were written, but the lifetime of the written buffer has
  /// ended.
  enum State : uint8_t { unwritten, ended, written };
  State state = unwritten;
  Touch write;              // last write; the time 0 means no write
  std::vector<Touch> reads; // reads by transfers since the last write
};

class Shadow {
public:
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
  /// Records a write of [begin, end). The cells in this range are merged to one cell.
  void write(uint64_t begin, uint64_t end, const Touch &touch);
  /// Records that the lifetime of the values in [begin, end) has ended. Keeps the recorded
  /// accesses, since transfers may still be in flight.
  void end(uint64_t begin, uint64_t end);
  uint64_t size() const { return cells.rbegin()->first; }
  size_t numCells() const { return cells.size() - 1; }

private:
  std::map<uint64_t, Cell>::iterator cut(uint64_t at);

  std::map<uint64_t, Cell> cells; // cells by offset; the last key is the end
};

} // namespace fsdprt

#endif // FSDPRT_NULL_SHADOW_H
