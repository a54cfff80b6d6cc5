//===- FutexEvent.h - Waiting on a counter without busy loops ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An event is a counter that notify() increments. A waiter reads the counter and then tests the
// condition for which it waits. If the condition is false, the waiter sleeps until the counter
// changes.
//
//     waiter                          notifier
//     seen = event.read()              publish
//     published? no                   event.notify(): ++counter, wake if any sleep
//     event.sleep(seen, limit)
//
// Before a waiter sleeps, it spins for some microseconds and then yields for some milliseconds,
// unless the process has more threads than the machine has cores. A SharedFutexEvent may be in
// memory that several processes share.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_FUTEXEVENT_H
#define FSDPRT_CORE_FUTEXEVENT_H

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fsdprt {

template <int flag>
class BasicFutexEvent {
public:
  uint32_t read() const { return counter.load(std::memory_order_seq_cst); }

  void notify() {
    counter.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) != 0)
      syscall(SYS_futex, &counter, FUTEX_WAKE | flag, INT_MAX, nullptr, nullptr, 0);
  }

  /// Sleeps until the counter differs from `seen`, at most for `milliseconds`. May return early.
  void sleep(uint32_t seen, uint32_t milliseconds) {
    timespec limit = {milliseconds / 1000, static_cast<long>(milliseconds % 1000) * 1000000};
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    syscall(SYS_futex, &counter, FUTEX_WAIT | flag, seen, &limit, nullptr, 0);
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }

private:
  std::atomic<uint32_t> counter{0};
  std::atomic<uint32_t> sleepers{0};
};
using FutexEvent = BasicFutexEvent<FUTEX_PRIVATE_FLAG>;
using SharedFutexEvent = BasicFutexEvent<0>;

inline void pauseBriefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

inline double monotonicSeconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

/// For how long a waiter that spins also yields. If a thread sleeps beside a busy process of low
/// priority, this process runs until the end of its time slice (several milliseconds) although the
/// thread is awake again.
inline constexpr double yieldSeconds = 0.01;

/// Returns how often a waiter tests its condition before it sleeps. `threads` is the number of
/// threads that compete for the cores of the machine.
uint32_t spinsFor(uint32_t threads);

/// Waits until `ready` returns true. First spins and yields, unless `spins` is 0, and then sleeps
/// for at most `milliseconds` milliseconds at a time. Calls `idle` after each sleep.
template <typename AnyEvent, typename Ready, typename Idle>
void waitFor(AnyEvent &event, uint32_t spins, uint32_t milliseconds, Ready ready, Idle idle) {
  for (uint32_t i = 0; i < spins; ++i) {
    if (ready())
      return;
    pauseBriefly();
  }
  for (double end = spins ? monotonicSeconds() + yieldSeconds : 0; end > monotonicSeconds();) {
    if (ready())
      return;
    sched_yield();
  }
  while (true) {
    uint32_t seen = event.read();
    if (ready())
      return;
    event.sleep(seen, milliseconds);
    if (ready())
      return;
    idle();
  }
}

} // namespace fsdprt

#endif // FSDPRT_CORE_FUTEXEVENT_H
