//===- AsyncTransferWorker.h - A rank's transfer thread --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A thread completes transfers in the order in which they were posted, while the rank computes:
//
//     rank        post | launch | launch | launch | await
//     worker         [ waits for peers, copies ]
//
// A rank has one worker for its collectives. This worker runs one transfer at a time, because one
// transfer can use the full bandwidth of the links. All ranks post transfers in the program's
// order, so that workers cannot deadlock. A second worker makes the copies between device, host and
// file, which need no peer.
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
  /// Starts the thread, which calls `perform` with each posted transfer (an index below
  /// `numTransfers`). The constructor allocates all memory that the worker needs.
  AsyncTransferWorker(uint32_t numTransfers, std::function<void(uint32_t)> perform);
  ~AsyncTransferWorker();
  AsyncTransferWorker(const AsyncTransferWorker &) = delete;
  AsyncTransferWorker &operator=(const AsyncTransferWorker &) = delete;

  /// Posts a transfer for execution. Allocates no memory and does not wait.
  void post(uint32_t transfer);
  /// Waits until a transfer is complete. Throws the error of this or an earlier transfer.
  void await(uint32_t transfer);
  /// Returns true if a transfer is complete. The caller may then read its span and its target.
  bool isDone(uint32_t transfer) const {
    return done.load(std::memory_order_acquire) >= tickets[transfer];
  }
  /// Time span in which a transfer last ran, in nanoseconds of monotonicNanoseconds().
  struct Span {
    uint64_t begin = 0, end = 0;
  };
  Span span(uint32_t transfer) const { return spans[transfer]; }

private:
  void serve();

  std::function<void(uint32_t)> perform;
  std::vector<uint32_t> queue;   // ring buffer; no transfer is in it twice
  std::vector<uint64_t> tickets; // by transfer: number of its post, from 1
  std::vector<Span> spans;
  std::atomic<uint64_t> posted{0}, done{0};
  std::atomic<bool> isReady{false}, ending{false}, failed{false};
  std::exception_ptr error; // set before `failed`
  FutexEvent postEvent, doneEvent;
  std::thread thread;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CPU_ASYNCTRANSFERWORKER_H
