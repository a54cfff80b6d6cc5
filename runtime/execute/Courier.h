//===- Courier.h - The thread that moves a rank's bytes ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives on a channel are completed by a thread of their own, in the order in which they were
// started, while the rank computes:
//
//     rank      start | launch | launch | launch | wait
//     courier         [ waits for peers, copies ]
//
// A rank has one, so that it does one transfer at a time: that is how many its links could do at
// full speed. The order is the program's on every rank, so that couriers never wait for each other
// in a circle. Copies between the arenas of device and host, which wait for nobody, have a courier
// of their own.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_COURIER_H
#define FSDPRT_EXECUTE_COURIER_H

#include "collectives/Communicator.h"
#include <exception>
#include <functional>

namespace fsdprt {

/// Completes a collective, and takes at least as long as links of `bytesPerSecond` would (0: as
/// fast as it goes).
void finishPaced(Communicator &communicator, uint32_t collective, uint32_t rank, WorkerPool &pool,
                 double bytesPerSecond);

class Courier {
public:
  /// Calls `carry`, on its thread, with each of the errands 0 .. `errands` - 1 that is posted. The
  /// thread has what it needs when this returns: nothing of it is allocated within a step.
  Courier(uint32_t errands, std::function<void(uint32_t)> carry);
  /// Of `rank`, for all collectives that the communicator has.
  Courier(Communicator &communicator, uint32_t rank, double bytesPerSecond);
  ~Courier();
  Courier(const Courier &) = delete;
  Courier &operator=(const Courier &) = delete;

  /// The rank has started an errand, such as a collective. Allocates nothing, waits for nothing.
  void post(uint32_t errand);
  /// Until it is complete; throws what it failed with, or what one before it failed with.
  void await(uint32_t errand);
  /// Whether it is complete; its span and what it moved may be looked at then.
  bool isDone(uint32_t errand) const {
    return done.load(std::memory_order_acquire) >= tickets[errand];
  }
  /// When it was moved, the last time: nanoseconds of Profile::now.
  struct Span {
    uint64_t begin = 0, end = 0;
  };
  Span span(uint32_t errand) const { return spans[errand]; }

private:
  void serve();

  std::function<void(uint32_t)> carry;
  std::vector<uint32_t> queue;   // a ring: an errand is in flight once at most
  std::vector<uint64_t> tickets; // by errand: its place in the sequence of all posts, from 1
  std::vector<Span> spans;
  std::atomic<uint64_t> posted{0}, done{0};
  std::atomic<bool> isReady{false}, ending{false}, failed{false};
  std::exception_ptr error; // behind `failed`
  Bell postBell, doneBell;
  std::thread thread;
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_COURIER_H
