//===- Courier.cpp - The thread that moves a rank's bytes -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One writer of `posted` (the rank) and one of `done` (the courier); both only grow. Behind a
// failure nothing is moved any more, and every await throws.
//
//===----------------------------------------------------------------------===//

#include "execute/Courier.h"
#include "core/Stack.h"
#include "execute/Profile.h"

using namespace fsdprt;

static constexpr uint32_t sliceMilliseconds = 20;

void fsdprt::finishPaced(Communicator &communicator, uint32_t collective, uint32_t rank,
                         WorkerPool &pool, double bytesPerSecond) {
  double begin = bytesPerSecond > 0 ? monotonicSeconds() : 0;
  communicator.wait(collective, rank, pool);
  if (bytesPerSecond <= 0)
    return;
  double end = begin + static_cast<double>(communicator.wireBytes(collective)) / bytesPerSecond;
  for (double now = monotonicSeconds(); now < end && !communicator.getWatch().hasFailed();
       now = monotonicSeconds()) {
    double nap = std::min(end - now, 0.01);
    timespec time = {0, static_cast<long>(nap * 1e9)};
    nanosleep(&time, nullptr);
  }
}

Courier::Courier(uint32_t errands, std::function<void(uint32_t)> carry)
    : carry(std::move(carry)), queue(errands + 1), tickets(errands, 0), spans(errands),
      thread([this] { serve(); }) {
  waitFor(
      doneBell, 0, sliceMilliseconds, [&] { return isReady.load(std::memory_order_acquire); },
      [] {});
}

Courier::Courier(Communicator &communicator, uint32_t rank, double bytesPerSecond)
    : Courier(communicator.numCollectives(),
              [&communicator, rank, bytesPerSecond,
               pool = std::make_shared<WorkerPool>(1, 0)](uint32_t collective) {
                finishPaced(communicator, collective, rank, *pool, bytesPerSecond);
              }) {}

Courier::~Courier() {
  ending = true;
  postBell.ring();
  thread.join();
}

void Courier::post(uint32_t errand) {
  uint64_t ticket = posted.load(std::memory_order_relaxed) + 1;
  queue[ticket % queue.size()] = errand;
  tickets[errand] = ticket;
  posted.store(ticket, std::memory_order_release);
  postBell.ring();
}

void Courier::await(uint32_t errand) {
  uint64_t ticket = tickets[errand];
  waitFor(
      doneBell, 0, sliceMilliseconds,
      [&] {
        return done.load(std::memory_order_acquire) >= ticket ||
               failed.load(std::memory_order_acquire);
      },
      [] {});
  if (done.load(std::memory_order_acquire) < ticket)
    std::rethrow_exception(error);
}

void Courier::serve() {
  touchStack();
  isReady.store(true, std::memory_order_release);
  doneBell.ring();
  for (uint64_t next = 1;; ++next) {
    waitFor(
        postBell, 0, 1000,
        [&] { return posted.load(std::memory_order_acquire) >= next || ending.load(); }, [] {});
    if (posted.load(std::memory_order_acquire) < next)
      return;
    uint32_t errand = queue[next % queue.size()];
    if (!failed.load(std::memory_order_relaxed)) {
      try {
        spans[errand].begin = Profile::now();
        carry(errand);
        spans[errand].end = Profile::now();
        done.store(next, std::memory_order_release);
      } catch (...) {
        error = std::current_exception();
        failed.store(true, std::memory_order_release);
      }
      doneBell.ring();
    }
  }
}
