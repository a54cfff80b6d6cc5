//===- Watch.h - Who is alive, and where ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every rank beats once per command and says which one it is at. A rank that waits
// looks at the beats of those it waits for: its patience begins anew with each of
// theirs, so that a slow rank is waited for and one that hangs is named.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_WATCH_H
#define FSDPRT_COLLECTIVES_WATCH_H

#include "core/Error.h"
#include "device/Futex.h"
#include <atomic>
#include <memory>
#include <vector>

namespace fsdprt {

class Watch {
public:
  Watch(uint32_t ranks, double timeoutSeconds) : lives(new Life[ranks]), ranks(ranks), timeout(timeoutSeconds) {}

  /// `label` lives as long as the watch.
  void beat(uint32_t rank, uint32_t command, const char *label) {
    lives[rank].command.store(command, std::memory_order_relaxed);
    lives[rank].label.store(label, std::memory_order_relaxed);
    beat(rank);
  }
  void beat(uint32_t rank) {
    lives[rank].beats.store(lives[rank].beats.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  uint64_t beats(uint32_t rank) const { return lives[rank].beats.load(std::memory_order_relaxed); }

  /// "rank 2 (last seen at command 12, 'h.0 mlp')".
  std::string whereabouts(uint32_t rank) const;

  double timeoutSeconds() const { return timeout; }
  uint32_t size() const { return ranks; }

  /// Set by the first rank that fails, so that no other waits for it.
  void fail() { failed.store(true, std::memory_order_release); }
  bool hasFailed() const { return failed.load(std::memory_order_acquire); }

private:
  struct alignas(64) Life {
    std::atomic<uint64_t> beats{0};
    std::atomic<uint32_t> command{0};
    std::atomic<const char *> label{nullptr};
  };
  std::unique_ptr<Life[]> lives;
  uint32_t ranks;
  double timeout;
  std::atomic<bool> failed{false};
};

/// What a rank reports when it stops because another one has failed.
class Abandoned : public Error {
public:
  Abandoned() : Error(FSDPRT_FAILED, "stopped because another rank failed") {}
};

/// The patience of one wait.
class Patience {
public:
  explicit Patience(const Watch &watch) : watch(watch), since(monotonicSeconds()) {}

  /// `missing` counts the beats of those waited for. True when they have been still for too long.
  bool isOver(uint64_t beats) {
    double now = monotonicSeconds();
    if (beats != lastBeats) {
      lastBeats = beats;
      since = now;
    }
    return now - since >= watch.timeoutSeconds();
  }

private:
  const Watch &watch;
  double since;
  uint64_t lastBeats = 0;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_WATCH_H
