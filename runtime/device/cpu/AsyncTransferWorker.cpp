//===- AsyncTransferWorker.cpp - A rank's transfer thread ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `posted` is incremented only by the thread of the rank, and `done` only by the thread of the
// worker. When a transfer has failed, no further transfer is performed. await() throws the error of
// the failed transfer if it is called for this transfer or for a later one.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/AsyncTransferWorker.h"
#include "core/Clock.h"
#include "core/Stack.h"

using namespace fsdprt;

static constexpr uint32_t pollMilliseconds = 20;

AsyncTransferWorker::AsyncTransferWorker(uint32_t numTransfers,
                                         std::function<void(uint32_t)> perform)
    : perform(std::move(perform)), queue(numTransfers + 1), tickets(numTransfers, 0),
      spans(numTransfers), thread([this] { serve(); }) {
  waitFor(
      doneEvent, 0, pollMilliseconds, [&] { return isReady.load(std::memory_order_acquire); },
      [] {});
}

AsyncTransferWorker::~AsyncTransferWorker() {
  ending = true;
  postEvent.notify();
  thread.join();
}

void AsyncTransferWorker::post(uint32_t transfer) {
  uint64_t ticket = posted.load(std::memory_order_relaxed) + 1;
  queue[ticket % queue.size()] = transfer;
  tickets[transfer] = ticket;
  posted.store(ticket, std::memory_order_release);
  postEvent.notify();
}

void AsyncTransferWorker::await(uint32_t transfer) {
  uint64_t ticket = tickets[transfer];
  waitFor(
      doneEvent, 0, pollMilliseconds,
      [&] {
        return done.load(std::memory_order_acquire) >= ticket ||
               failed.load(std::memory_order_acquire);
      },
      [] {});
  if (done.load(std::memory_order_acquire) < ticket)
    std::rethrow_exception(error);
}

void AsyncTransferWorker::serve() {
  touchStack();
  isReady.store(true, std::memory_order_release);
  doneEvent.notify();
  for (uint64_t next = 1;; ++next) {
    waitFor(
        postEvent, 0, 1000,
        [&] { return posted.load(std::memory_order_acquire) >= next || ending.load(); }, [] {});
    if (posted.load(std::memory_order_acquire) < next)
      return;
    uint32_t transfer = queue[next % queue.size()];
    if (!failed.load(std::memory_order_relaxed)) {
      try {
        spans[transfer].begin = monotonicNanoseconds();
        perform(transfer);
        spans[transfer].end = monotonicNanoseconds();
        done.store(next, std::memory_order_release);
      } catch (...) {
        error = std::current_exception();
        failed.store(true, std::memory_order_release);
      }
      doneEvent.notify();
    }
  }
}
