//===- Shadow.h - What is known of the bytes of a rank ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An interval map over the offsets of a layout: of each range, whether something has written it
// since its buffer's life began, who did so last, and which transfers have read it since. A range
// is cut where accesses begin and end, and is one again when something writes all of it, so that
// its size follows the commands, not the bytes.
//
// When something happened is an epoch: the count of a stream. A clock has a component per stream,
// the last of its epochs that is known to be over. An access races with another that its clock does
// not know, if one of the two writes.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_NULL_SHADOW_H
#define FSDPRT_NULL_SHADOW_H

#include "fsdprt/artifact_generated.h"
#include <map>
#include <vector>

namespace fsdprt {

/// Of a rank: 0 computes; each transfer in flight, a collective or a copy, is a stream of its own.
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

/// A command at work: which, and in which run of which program. Without a command: the host, before
/// or after that run.
struct Moment {
  const fb::Command *command = nullptr;
  uint32_t run = 0, number = 0, iteration = 0;
};

/// An access that has been seen.
struct Touch {
  Epoch epoch;
  Moment moment;
};

struct Cell {
  enum State : uint8_t { unwritten, ended, written }; // ended: by a buffer that lived here before
  State state = unwritten;
  Touch write;              // the last one, if any: of time 0
  std::vector<Touch> reads; // of transfers, since
};

class Shadow {
public:
  /// Over [0, end).
  explicit Shadow(uint64_t end) : cells{{0, Cell()}, {end, Cell()}} {}

  /// Calls visit(begin, end, cell) for what [begin, end) is made of.
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
  /// [begin, end) is written, all at once.
  void write(uint64_t begin, uint64_t end, const Touch &touch);
  /// What is in [begin, end) is nobody's; who touched it, and may still, stays known.
  void end(uint64_t begin, uint64_t end);
  uint64_t size() const { return cells.rbegin()->first; }
  size_t numCells() const { return cells.size() - 1; }

private:
  std::map<uint64_t, Cell>::iterator cut(uint64_t at);

  std::map<uint64_t, Cell> cells; // by begin; the last one is the end
};

} // namespace fsdprt

#endif // FSDPRT_NULL_SHADOW_H
