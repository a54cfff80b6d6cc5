//===- VectorClocks.h - Order of accesses -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Vector clocks of the threads of a cluster. Each thread T has a time, which grows when T releases,
// and a row. The row holds, for each thread U, the time up to which accesses of U are ordered
// before the next access of T; T "covers" these accesses. Threads that meet at a barrier share a
// row, so joining many threads is cheap if their rows are equal. The second half of a row holds the
// times up to which a proxy fence has made accesses visible to the async proxy (PTX ISA,
// "Proxies").
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_VECTORCLOCKS_H
#define FSDPRT_EMULATOR_MACHINE_VECTORCLOCKS_H

#include "emulator/machine/Program.h"

namespace fsdprt::emulate {

using Time = uint32_t;
using Row = std::vector<Time>;
using RowRef = std::shared_ptr<const Row>;

/// Releases of threads into a barrier or at an address, which other threads acquire.
class Released {
public:
  bool isEmpty() const { return row.empty(); }
  void clear() { row.clear(), last = nullptr, shared = nullptr; }
  void join(const RowRef &other);
  /// Adds all releases of `other`.
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
  /// Releases the accesses so far of `lanes` of the warp whose first thread is `first`.
  void release(uint32_t first, LaneMask lanes, Released &into);
  void acquire(uint32_t first, LaneMask lanes, Released &from);
  /// Executes a proxy fence: orders earlier accesses before later accesses of the async proxy.
  void fenceProxy(uint32_t first, LaneMask lanes);

  /// Starts work that `agent` does for a thread. The thread's earlier accesses are ordered before
  /// the work, its later accesses are not.
  void fork(uint32_t thread, uint32_t agent);
  /// Returns the agent's time after its accesses so far, for learn().
  Time finish(uint32_t agent);
  /// Orders the accesses of `agent` up to `time` before the next accesses of `lanes` of the warp
  /// whose first thread is `first`.
  void learn(uint32_t first, LaneMask lanes, uint32_t agent, Time time);
  /// Starts work that an agent does for many threads. Accesses that all of the threads cover are
  /// ordered before the work. `warps` holds the first thread of each warp.
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
  std::vector<uint32_t> owners; ///< for an agent, the thread it acts for; for a thread, itself
  std::vector<Time> forkTimes;
  std::map<std::pair<uint32_t, size_t>, Gathered> gathered; ///< key: first thread, number of warps
};

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_VECTORCLOCKS_H
