//===- VectorClocks.h - Order of accesses -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Stores the vector clocks of the threads of a cluster and of their agents. An agent is an
// additional thread that makes the accesses of asynchronous operations. Each thread T has a row and
// a time, which grows when T executes a release. The row holds, for each thread U, the time up to
// which accesses of U are ordered before the next access of T; T "covers" these accesses. After a
// barrier, the threads of the barrier share one row object, so that joining the rows of many
// threads costs little if their rows are equal. The second half of a row holds the times up to
// which a proxy fence has made accesses visible to the async proxy (PTX ISA, "Proxies").
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_VECTORCLOCKS_H
#define FSDPRT_EMULATOR_MACHINE_VECTORCLOCKS_H

#include "emulator/machine/Program.h"

namespace fsdprt::emulate {

using Time = uint32_t;
using Row = std::vector<Time>;
using RowRef = std::shared_ptr<const Row>;

/// The releases that threads have made by arriving at a barrier or by writing to an address. Other
/// threads acquire these releases.
class Released {
public:
  bool isEmpty() const { return row.empty(); }
  void clear() { row.clear(), last = nullptr, shared = nullptr; }
  void join(const RowRef &other);
  void join(const Released &other);
  void atLeast(uint32_t index, Time time) {
    row[index] = row[index] < time ? time : row[index], shared = nullptr;
  }
  const RowRef &share();
  const Row &times() const { return row; }

private:
  Row row;
  RowRef last;   ///< last row joined
  RowRef shared; ///< copy of `row`
};

class VectorClocks {
public:
  explicit VectorClocks(uint32_t threads);
  uint32_t threadCount() const { return times.size(); }
  Time timeOf(uint32_t thread) const { return times[thread]; }

  /// Returns true if an access of `other` at `time` is ordered before the next access of `thread`.
  bool isBefore(uint32_t other, Time time, uint32_t thread) const {
    return other == thread || (*rows[thread])[other] >= time ||
           (other == owners[thread] && time <= forkTimes[thread]);
  }
  /// Returns true if an access of `other` at `time` is ordered before the next async proxy access
  /// of `thread`.
  bool isProxied(uint32_t other, Time time, uint32_t thread) const {
    return (*rows[thread])[times.size() + other] >= time;
  }
  /// Adds to `into` a release of the accesses that `lanes` of a warp have made. `first` is the
  /// index of the first thread of the warp.
  void release(uint32_t first, LaneMask lanes, Released &into);
  void acquire(uint32_t first, LaneMask lanes, Released &from);
  /// Executes a proxy fence of `lanes` of the warp whose first thread is `first`. After the fence,
  /// earlier accesses are ordered before later accesses through the async proxy.
  void fenceProxy(uint32_t first, LaneMask lanes);

  /// Starts work that `agent` does for `thread`. Earlier accesses of the thread are ordered before
  /// the work. Later accesses of the thread are not ordered before the work.
  void fork(uint32_t thread, uint32_t agent);
  /// Returns the time of the accesses that the agent has made so far. The caller passes this time
  /// to learn().
  Time finish(uint32_t agent);
  /// Orders the accesses of `agent` up to `time` before the next accesses of `lanes` of a warp.
  /// `first` is the index of the first thread of the warp.
  void learn(uint32_t first, LaneMask lanes, uint32_t agent, Time time);
  /// Starts work that an agent does for many threads. An access is ordered before the work if all
  /// of these threads cover the access. `warps` contains the index of the first thread of each
  /// warp.
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
  std::vector<uint32_t> owners; ///< for an agent, the thread for which the agent works; for a
                                ///< thread, the thread itself
  std::vector<Time> forkTimes;
  std::map<std::pair<uint32_t, size_t>, Gathered> gathered; ///< key: first thread, number of warps
};

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_VECTORCLOCKS_H
