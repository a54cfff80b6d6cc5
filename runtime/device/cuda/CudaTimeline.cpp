//===- CudaTimeline.cpp - Times of work on a rank's streams -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// begin() records an event, polls until the GPU has reached this event, and then reads the clock of
// the host. Times of the GPU are measured relative to this event. The error of a time is therefore
// at most the time between two polls.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/CudaTimeline.h"
#include "core/Clock.h"
#include "core/Error.h"
#include <algorithm>

using namespace fsdprt;

CudaTimeline::CudaTimeline(const CudaQueue &queue, uint64_t stamps) : queue(queue), events(stamps) {
  queue.use();
  const CudaDriver &cuda = queue.driver();
  cuda.check(cuda.eventCreate(&base, cudaEventTimed), "create a timed event");
  for (CudaEvent &event : events)
    cuda.check(cuda.eventCreate(&event, cudaEventTimed), "create a timed event");
}

CudaTimeline::~CudaTimeline() {
  queue.use();
  for (CudaEvent event : events)
    if (event)
      queue.driver().eventDestroy(event);
  if (base)
    queue.driver().eventDestroy(base);
}

void CudaTimeline::begin(const std::function<void()> &idle) {
  last.store(0, std::memory_order_relaxed);
  queue.finish(idle);
  queue.driver().check(queue.driver().eventRecord(base, queue.stream(CudaQueue::compute)),
                       "record an event");
  queue.finish(idle);
  hostBase = monotonicNanoseconds();
}

uint32_t CudaTimeline::stamp(CudaQueue::Lane lane) noexcept {
  uint32_t number = last.fetch_add(1, std::memory_order_relaxed);
  if (number >= events.size())
    return 0;
  queue.use();
  queue.driver().eventRecord(events[number], queue.stream(lane));
  return number + 1;
}

uint64_t CudaTimeline::timeOf(uint32_t stamp) const {
  float milliseconds = 0;
  queue.use();
  queue.driver().check(queue.driver().eventElapsedTime(&milliseconds, base, events.at(stamp - 1)),
                       "query the time between events");
  return hostBase + static_cast<uint64_t>(std::max(0.0, static_cast<double>(milliseconds) * 1e6));
}
