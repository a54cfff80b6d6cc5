//===- AsyncTransferWorker.h - A rank's transfer thread --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A worker has a thread that performs transfers while the rank computes. The thread performs the
// transfers in the order in which the rank posts them:
//
//     rank        post | launch | launch | launch | await
//     worker         [ waits for other ranks, copies ]
//
// A rank has one worker for all of its collectives. This worker performs only one transfer at a
// time, because a single transfer can use the full bandwidth of the links. All ranks post their
// transfers in the order of the program, so the workers of different ranks cannot deadlock. A rank
// may have further workers for copies between device memory, host memory and the file of offloaded
// states. These copies do not wait for other ranks.
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
  /// Starts the thread of the worker. For each transfer that is posted, this thread calls
  /// perform(transfer). A transfer is identified by an index that is less than `numTransfers`. The
  /// constructor allocates all memory that the worker needs.
  AsyncTransferWorker(uint32_t numTransfers, std::function<void(uint32_t)> perform);
  ~AsyncTransferWorker();
  AsyncTransferWorker(const AsyncTransferWorker &) = delete;
  AsyncTransferWorker &operator=(const AsyncTransferWorker &) = delete;

  /// Posts a transfer for execution. Allocates no memory and does not wait.
  void post(uint32_t transfer);
  /// Waits until a transfer is complete. If this transfer or an earlier transfer has failed, throws
  /// the error of the failed transfer.
  void await(uint32_t transfer);
  /// Returns true if a transfer is complete. The caller may then read the transfer's target and
  /// span().
  bool isDone(uint32_t transfer) const {
    return done.load(std::memory_order_acquire) >= tickets[transfer];
  }
  /// The times, as results of monotonicNanoseconds(), at which a transfer last began and ended.
  struct Span {
    uint64_t begin = 0, end = 0;
  };
  Span span(uint32_t transfer) const { return spans[transfer]; }

private:
  void serve();

  std::function<void(uint32_t)> perform;
  std::vector<uint32_t> queue; ///< ring buffer of the transfers that were posted
  /// for each transfer: value of `posted` after post() was last called for it
  std::vector<uint64_t> tickets;
  std::vector<Span> spans;
  std::atomic<uint64_t> posted{0}, done{0};
  std::atomic<bool> isReady{false}, ending{false}, failed{false};
  std::exception_ptr error; ///< written before `failed` is set
  FutexEvent postEvent, doneEvent;
  std::thread thread;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CPU_ASYNCTRANSFERWORKER_H
