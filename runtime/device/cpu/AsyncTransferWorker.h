//===- AsyncTransferWorker.h - A rank's transfer thread --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The thread of a worker completes transfers in the order in which the rank posts them, while the
// rank computes:
//
//     rank        post | launch | launch | launch | await
//     worker         [ waits for other ranks, copies ]
//
// A rank has one worker for collectives. This worker runs one transfer at a time, because one
// transfer can use the full bandwidth of the links. All ranks post transfers in the order of the
// program, so that their workers cannot deadlock. Further workers execute copies between device
// memory, host memory and the file of offloaded states, which do not wait for other ranks.
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
  /// Starts the thread, which calls perform(transfer) for each posted transfer. Transfers are
  /// indices below `numTransfers`. The constructor allocates all memory that the worker needs.
  AsyncTransferWorker(uint32_t numTransfers, std::function<void(uint32_t)> perform);
  ~AsyncTransferWorker();
  AsyncTransferWorker(const AsyncTransferWorker &) = delete;
  AsyncTransferWorker &operator=(const AsyncTransferWorker &) = delete;

  /// Posts a transfer for execution. Allocates no memory and does not wait.
  void post(uint32_t transfer);
  /// Waits until a transfer is complete. Throws the error of this transfer or of an earlier one.
  void await(uint32_t transfer);
  /// Returns true if a transfer is complete. The caller may then read its target, and call span().
  bool isDone(uint32_t transfer) const {
    return done.load(std::memory_order_acquire) >= tickets[transfer];
  }
  /// Begin and end of the last execution of a transfer, as results of monotonicNanoseconds().
  struct Span {
    uint64_t begin = 0, end = 0;
  };
  Span span(uint32_t transfer) const { return spans[transfer]; }

private:
  void serve();

  std::function<void(uint32_t)> perform;
  std::vector<uint32_t> queue;   ///< ring buffer of posted transfers
  std::vector<uint64_t> tickets; ///< for each transfer, `posted` after its last post()
  std::vector<Span> spans;
  std::atomic<uint64_t> posted{0}, done{0};
  std::atomic<bool> isReady{false}, ending{false}, failed{false};
  std::exception_ptr error; ///< set before `failed`
  FutexEvent postEvent, doneEvent;
  std::thread thread;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CPU_ASYNCTRANSFERWORKER_H
