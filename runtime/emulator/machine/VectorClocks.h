//===- VectorClocks.h - Which accesses are ordered --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Vector clocks of the threads of a cluster. Every thread has a time, which grows when it releases,
// and a row: the times of all threads up to which their accesses are before its next one. Threads
// that meet at a barrier have one row together, so rows are shared, and joining many threads costs
// little when their rows are the same. The second half of a row says the same of accesses that a
// proxy fence has made known to the async proxy (PTX ISA, "Proxies").
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_VECTORCLOCKS_H
#define FSDPRT_EMULATOR_MACHINE_VECTORCLOCKS_H

#include "emulator/machine/Program.h"

namespace fsdprt::emulate {

using Time = uint32_t;
using Row = std::vector<Time>;
using RowRef = std::shared_ptr<const Row>;

/// What threads have released into a barrier, until others acquire it.
class Released {
public:
  bool isEmpty() const { return row.empty(); }
  void clear() { row.clear(), last = nullptr, shared = nullptr; }
  void join(const RowRef &other);
  /// Takes all that `other` has.
  void join(const Released &other);
  void atLeast(uint32_t index, Time time) {
    row[index] = row[index] < time ? time : row[index], shared = nullptr;
  }
  const RowRef &share();
  const Row &times() const { return row; }

private:
  Row row;
  RowRef last;   ///< the last one joined
  RowRef shared; ///< a copy of row
};

class VectorClocks {
public:
  explicit VectorClocks(uint32_t threads);
  uint32_t threadCount() const { return times.size(); }
  Time timeOf(uint32_t thread) const { return times[thread]; }

  /// Whether what `other` did at `time` is before what `thread` does now.
  bool isBefore(uint32_t other, Time time, uint32_t thread) const {
    return other == thread || (*rows[thread])[other] >= time ||
           (other == owners[thread] && time <= forkTimes[thread]);
  }
  /// The same for what the async proxy does now for `thread`.
  bool isProxied(uint32_t other, Time time, uint32_t thread) const {
    return (*rows[thread])[times.size() + other] >= time;
  }
  /// Lanes of the threads from `first` on: what they did so far goes into `into`.
  void release(uint32_t first, LaneMask lanes, Released &into);
  void acquire(uint32_t first, LaneMask lanes, Released &from);
  /// A proxy fence: all that is before, is before what the async proxy does.
  void fenceProxy(uint32_t first, LaneMask lanes);

  /// A thread starts something that `agent` does for it: what the thread has done is before that,
  /// what it does next is not.
  void fork(uint32_t thread, uint32_t agent);
  /// What an agent has done so far, for learn().
  Time finish(uint32_t agent);
  /// What `agent` has done up to `time` is before what lanes of the threads from `first` on do now.
  void learn(uint32_t first, LaneMask lanes, uint32_t agent, Time time);
  /// An agent that acts for many threads at once, from then on: what all of them know is before
  /// that. `warps` are their firsts.
  void gather(uint32_t agent, const std::vector<uint32_t> &warps);

private:
  struct Gathered {
    std::vector<std::pair<RowRef, uint32_t>> distinct;
    RowRef least;
  };

  void collect(const std::vector<uint32_t> &warps,
               std::vector<std::pair<RowRef, uint32_t>> &distinct) const;
  template <typename Change>
  void changeRows(uint32_t first, LaneMask lanes, Change change);

  Time now = 1;
  std::vector<Time> times;
  std::vector<RowRef> rows;
  std::vector<uint32_t> owners; ///< of agents: for whom they act; of threads: themselves
  std::vector<Time> forkTimes;
  std::map<std::pair<uint32_t, size_t>, Gathered> gathered; ///< by the first warp, and how many
};

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_VECTORCLOCKS_H
