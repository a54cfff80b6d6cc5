//===- Watchdog.h - Who is alive, and where ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every rank beats once per command and says which one it is at. A rank that waits
// looks at the beats of those it waits for: its progress timeout begins anew with each of
// theirs, so that a slow rank is waited for and one that hangs is named.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_WATCHDOG_H
#define FSDPRT_COLLECTIVES_WATCHDOG_H

#include "core/Error.h"
#include "core/FutexEvent.h"
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace fsdprt {

/// What a rank says of itself. Of words only their place is stored: after `stringBase` of the
/// watch, so that processes which have the same artifact elsewhere in their memory read the same. A
/// collective that a rank has begun, and perhaps completed: nanoseconds of the machine's monotonic
/// clock; end 0: in flight.
struct CollectiveRecord {
  std::atomic<uint64_t> begin{0}, end{0}, number{0},
      program{0};                      // of the program's run; as in RankProgress
  std::atomic<uint32_t> collective{0}; // + 1
};

struct alignas(64) RankProgress {
  std::atomic<uint64_t> beats{0};
  std::atomic<uint64_t> label{0}, program{0};      // + 1; 0: none
  std::atomic<uint64_t> number{0};                 // of the program's run
  std::atomic<uint32_t> command{0}, collective{0}; // + 1; 0: none
  static constexpr uint64_t recorded = 64;         // the last collectives are kept
  std::atomic<uint64_t> numRecords{0};
  CollectiveRecord recorder[recorded];
};

class Watchdog {
public:
  Watchdog(uint32_t ranks, double timeoutSeconds)
      : own(new RankProgress[ranks]), ownFlag(new std::atomic<uint32_t>(0)),
        progressBase(reinterpret_cast<char *>(own.get())), flag(ownFlag.get()), ranks(ranks),
        timeout(timeoutSeconds) {}
  /// On memory that others see, too; a life every `stride` bytes.
  Watchdog(RankProgress *progressBase, size_t stride, std::atomic<uint32_t> *flag, uint32_t ranks,
           double timeoutSeconds)
      : progressBase(reinterpret_cast<char *>(progressBase)), stride(stride), flag(flag),
        ranks(ranks), timeout(timeoutSeconds) {}
  /// For a program that one rank runs alone, while others may wait for it: its beats count as the
  /// rank's, its collectives do not.
  std::unique_ptr<Watchdog> alone(uint32_t rank) const {
    auto watchdog = std::make_unique<Watchdog>(&progressAt(rank), stride, flag, 1, timeout);
    watchdog->meets = false;
    return watchdog;
  }

  /// Labels and names of programs are after this address; without it they have to live as long as
  /// the watch.
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

  /// "rank 2 (last seen in step 3 at command 12, 'h.0 mlp')".
  std::string describeProgress(uint32_t rank) const;
  /// The communicator's number of the collective that it began last; UINT32_MAX: none.
  uint32_t lastCollective(uint32_t rank) const {
    return progressAt(rank).collective.load(std::memory_order_relaxed) - 1;
  }

  /// For those who bring lives from one process to another.
  RankProgress &progressOf(uint32_t rank) const { return progressAt(rank); }
  uint64_t offsetOf(const char *word) const {
    return word && *word ? reinterpret_cast<uint64_t>(word) - stringBase + 1 : 0;
  }
  const char *stringAt(uint64_t place) const {
    return place ? reinterpret_cast<const char *>(place - 1 + stringBase) : "";
  }
  /// What the flight recorder has: the last collectives of all ranks, as JSON. `describe` gives a
  /// collective's words.
  std::string record(const std::string &reason,
                     const std::function<std::string(uint32_t)> &describe) const;

  /// Counts how often a wait of this process saw those move whom it waits for. Of this process
  /// alone: a wait is no progress that others could wait for.
  void countProgress() const { renewals.fetch_add(1, std::memory_order_relaxed); }
  uint64_t progressRenewals() const { return renewals.load(std::memory_order_relaxed); }

  double timeoutSeconds() const { return timeout; }
  uint32_t size() const { return ranks; }

  /// Set by the first rank that fails, so that no other waits for it: the status that it ends with,
  /// if it is known.
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

/// "step 12" of a run, or "program 'eval', run 3"; without a number there is none.
std::string runText(const char *program, uint64_t number);

/// What a rank reports when it stops because another one has failed.
class Abandoned : public Error {
public:
  explicit Abandoned(fsdprt_status status = FSDPRT_ABANDONED)
      : Error(status, "stopped because another rank failed") {}
};

/// The progress timeout of one wait.
class ProgressTimeout {
public:
  explicit ProgressTimeout(const Watchdog &watchdog)
      : watchdog(watchdog), since(monotonicSeconds()) {}

  /// `missing` counts the beats of those waited for. True when they have been still for too long.
  bool hasExpired(uint64_t beats) {
    double now = monotonicSeconds();
    if (beats != lastBeats) {
      lastBeats = beats;
      since = now;
      watchdog.countProgress();
    }
    return now - since >= watchdog.timeoutSeconds();
  }

private:
  const Watchdog &watchdog;
  double since;
  uint64_t lastBeats = 0;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_WATCHDOG_H
