//===- Watchdog.h - Progress of ranks ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every rank increments its heartbeat counter with each command that it executes, and records the
// command. A rank that waits for other ranks restarts its time limit whenever the heartbeat counter
// of one of these ranks changes. The time limit therefore expires if a rank hangs, but not if a
// rank is slow.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_WATCHDOG_H
#define FSDPRT_COLLECTIVES_WATCHDOG_H

#include "core/Error.h"
#include "core/FutexEvent.h"
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace fsdprt {

/// A collective that a rank has started. Times are in nanoseconds of CLOCK_MONOTONIC. `end` is 0
/// until the collective has ended.
struct CollectiveRecord {
  std::atomic<uint64_t> begin{0}, end{0};
  std::atomic<uint64_t> number{0}, program{0}; ///< as in RankProgress
  std::atomic<uint32_t> collective{0};         ///< index of the collective, plus 1
};

/// Progress of a rank. Strings are stored as offsets from `stringBase` of the watchdog. Other
/// processes, which have mapped the same artifact at another address, can thus read the strings.
struct alignas(64) RankProgress {
  std::atomic<uint64_t> beats{0};
  /// offsets of strings, plus 1; 0 if there is no string
  std::atomic<uint64_t> label{0}, program{0};
  /// for the program 'step': number of the step; otherwise: number of the run of `program`
  std::atomic<uint64_t> number{0};
  /// `collective`: index of the collective that was started last, plus 1; 0 if none was started
  std::atomic<uint32_t> command{0}, collective{0};
  /// number of entries of the ring buffer `recorder`
  static constexpr uint64_t recorded = 64;
  std::atomic<uint64_t> numRecords{0};
  CollectiveRecord recorder[recorded];
};

class Watchdog {
public:
  Watchdog(uint32_t ranks, double timeoutSeconds)
      : own(new RankProgress[ranks]), ownFlag(new std::atomic<uint32_t>(0)),
        progressBase(reinterpret_cast<char *>(own.get())), flag(ownFlag.get()), ranks(ranks),
        timeout(timeoutSeconds) {}
  /// The caller owns the memory of the RankProgress objects, and may share it with other processes.
  /// The object of rank r is at the address `progressBase` plus r * `stride` bytes.
  Watchdog(RankProgress *progressBase, size_t stride, std::atomic<uint32_t> *flag, uint32_t ranks,
           double timeoutSeconds)
      : progressBase(reinterpret_cast<char *>(progressBase)), stride(stride), flag(flag),
        ranks(ranks), timeout(timeoutSeconds) {}
  /// Returns a watchdog for a program that only this process runs. Meanwhile, ranks of other
  /// processes may wait for rank `rank` of this process: the heartbeats of the program count as
  /// heartbeats of `rank`. The collectives of the program are not recorded.
  std::unique_ptr<Watchdog> alone(uint32_t rank) const {
    auto watchdog = std::make_unique<Watchdog>(&progressAt(rank), stride, flag, 1, timeout);
    watchdog->meets = false;
    return watchdog;
  }

  /// Sets the address from which the offsets of strings are counted. The labels and the names of
  /// programs must live as long as the watchdog.
  void setStringBase(const void *address) { stringBase = reinterpret_cast<uint64_t>(address); }

  void beginRun(uint32_t rank, const char *program, uint64_t number) {
    progressAt(rank).program.store(offsetOf(program), std::memory_order_relaxed);
    progressAt(rank).number.store(number, std::memory_order_relaxed);
  }
  void beginCollective(uint32_t rank, uint32_t collective);
  void endCollective(uint32_t rank, uint32_t collective);
  void beat(uint32_t rank, uint32_t command, const char *label) {
    progressAt(rank).command.store(command, std::memory_order_relaxed);
    progressAt(rank).label.store(offsetOf(label), std::memory_order_relaxed);
    beat(rank);
  }
  void beat(uint32_t rank) {
    progressAt(rank).beats.store(progressAt(rank).beats.load(std::memory_order_relaxed) + 1,
                                 std::memory_order_relaxed);
  }
  uint64_t beats(uint32_t rank) const {
    return progressAt(rank).beats.load(std::memory_order_relaxed);
  }

  /// Returns a text such as "rank 2 (last seen in step 3 at command 12, 'h.0 mlp')".
  std::string describeProgress(uint32_t rank) const;
  /// Returns the index of the collective that a rank started last, or UINT32_MAX if there is none.
  uint32_t lastCollective(uint32_t rank) const {
    return progressAt(rank).collective.load(std::memory_order_relaxed) - 1;
  }

  /// Returns the progress of a rank. Code that sends the progress to other processes uses this
  /// function.
  RankProgress &progressOf(uint32_t rank) const { return progressAt(rank); }
  uint64_t offsetOf(const char *word) const {
    return word && *word ? reinterpret_cast<uint64_t>(word) - stringBase + 1 : 0;
  }
  const char *stringAt(uint64_t place) const {
    return place ? reinterpret_cast<const char *>(place - 1 + stringBase) : "";
  }
  /// Returns the flight record, which is a JSON text that lists the last collectives of all ranks.
  /// `describe` returns a text for the collective with a given index.
  std::string record(const std::string &reason,
                     const std::function<std::string(uint32_t)> &describe) const;

  /// Increments a counter. The counter states how often waits of this process have observed
  /// progress of the ranks for which they wait. The counter is not a heartbeat for other processes,
  /// because a rank that only waits makes no progress itself.
  void countProgress() const { renewals.fetch_add(1, std::memory_order_relaxed); }
  uint64_t progressRenewals() const { return renewals.load(std::memory_order_relaxed); }

  double timeoutSeconds() const { return timeout; }
  uint32_t size() const { return ranks; }

  /// Sets the failure flag, which makes the waits of other ranks end. `status` should be the status
  /// of the rank that failed first, if this status is known. Only the first call sets the flag.
  void fail(uint32_t status = FSDPRT_ABANDONED) {
    uint32_t none = 0;
    flag->compare_exchange_strong(none, status, std::memory_order_acq_rel);
  }
  uint32_t failure() const { return flag->load(std::memory_order_acquire); }
  bool hasFailed() const { return flag->load(std::memory_order_acquire) != 0; }

private:
  RankProgress &progressAt(uint32_t rank) const {
    return *reinterpret_cast<RankProgress *>(progressBase + rank * stride);
  }
  std::unique_ptr<RankProgress[]> own;
  std::unique_ptr<std::atomic<uint32_t>> ownFlag;
  char *progressBase;
  size_t stride = sizeof(RankProgress);
  std::atomic<uint32_t> *flag;
  mutable std::atomic<uint64_t> renewals{0};
  bool meets = true;
  uint64_t stringBase = 0;
  uint32_t ranks;
  double timeout;
};

/// Returns a text that names a run: "step 12" for run 12 of the program 'step', and "program
/// 'eval', run 3" for run 3 of the program 'eval'.
std::string runText(const char *program, uint64_t number);

/// The error that a rank throws when it stops because another rank has failed.
class Abandoned : public Error {
public:
  explicit Abandoned(fsdprt_status status = FSDPRT_ABANDONED,
                     const std::string &reason = "stopped because another rank failed")
      : Error(status, reason) {}
};

/// Counts the seconds in which a thread polls. Because the process may be stopped or the machine
/// suspended, the time between two calls of read() counts as at most 0.1 s.
class PollClock {
public:
  double read() {
    double now = monotonicSeconds();
    counted += std::min(now - last, 0.1);
    last = now;
    return counted;
  }

private:
  double last = monotonicSeconds(), counted = 0;
};

class ProgressTimeout {
public:
  explicit ProgressTimeout(const Watchdog &watchdog) : watchdog(watchdog) {}

  /// `beats` is the sum of the heartbeat counters of the missing ranks. Returns true if the time
  /// limit has passed since the sum changed last.
  bool hasExpired(uint64_t beats) {
    double now = clock.read();
    if (beats != lastBeats) {
      lastBeats = beats;
      since = now;
      watchdog.countProgress();
    }
    return now - since >= watchdog.timeoutSeconds();
  }

private:
  const Watchdog &watchdog;
  PollClock clock;
  double since = 0;
  uint64_t lastBeats = 0;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_WATCHDOG_H
