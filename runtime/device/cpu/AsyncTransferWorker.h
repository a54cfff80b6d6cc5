//===- AsyncTransferWorker.h - The thread that moves a rank's bytes *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Transfers are completed by a thread of their own, in the order in which they were posted, while
// the rank computes:
//
//     rank        post | launch | launch | launch | await
//     worker         [ waits for peers, copies ]
//
// A rank has one worker for its collectives, so that it does one transfer at a time: that is how
// many its links could do at full speed. The order is the program's on every rank, so that workers
// never wait for each other in a circle. Copies between the arenas of device and host, which wait
// for nobody, have a worker of their own.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CPU_ASYNCTRANSFERWORKER_H
#define FSDPRT_DEVICE_CPU_ASYNCTRANSFERWORKER_H

#include "core/FutexEvent.h"
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace fsdprt {

class AsyncTransferWorker {
public:
  /// Calls `perform`, on its thread, with each number below `numTransfers` that is posted. The
  /// thread has what it needs when this returns: nothing of it is allocated within a step.
  AsyncTransferWorker(uint32_t numTransfers, std::function<void(uint32_t)> perform);
  ~AsyncTransferWorker();
  AsyncTransferWorker(const AsyncTransferWorker &) = delete;
  AsyncTransferWorker &operator=(const AsyncTransferWorker &) = delete;

  /// The rank has started a transfer, such as a collective. Allocates nothing, waits for nothing.
  void post(uint32_t transfer);
  /// Until it is complete; throws what it failed with, or what one before it failed with.
  void await(uint32_t transfer);
  /// Whether it is complete; its span and what it moved may be looked at then.
  bool isDone(uint32_t transfer) const {
    return done.load(std::memory_order_acquire) >= tickets[transfer];
  }
  /// When it was moved, the last time: monotonicNanoseconds().
  struct Span {
    uint64_t begin = 0, end = 0;
  };
  Span span(uint32_t transfer) const { return spans[transfer]; }

private:
  void serve();

  std::function<void(uint32_t)> perform;
  std::vector<uint32_t> queue;   // a ring: a transfer is in flight once at most
  std::vector<uint64_t> tickets; // by transfer: its place in the sequence of all posts, from 1
  std::vector<Span> spans;
  std::atomic<uint64_t> posted{0}, done{0};
  std::atomic<bool> isReady{false}, ending{false}, failed{false};
  std::exception_ptr error; // after `failed`
  FutexEvent postEvent, doneEvent;
  std::thread thread;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CPU_ASYNCTRANSFERWORKER_H
