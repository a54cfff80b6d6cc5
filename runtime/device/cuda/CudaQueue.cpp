//===- CudaQueue.cpp - The streams of a rank on a GPU ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A wait first polls without pauses for a short time. After this time, the wait sleeps briefly and
// calls idle() between two polls. If idle() throws an exception, for example because another rank
// has failed, the wait ends.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/CudaQueue.h"
#include "core/FutexEvent.h"
#include "device/cuda/CudaTimeline.h"

using namespace fsdprt;

static constexpr int urgent = -1;           // priority of transfers
static constexpr double pollSeconds = 2e-4; // seconds for which a wait polls without pauses
static constexpr long napNanoseconds = 20000;

CudaQueue::CudaQueue(const CudaDriver &cuda, int device, CudaContext context, const CudaSums *sums)
    : cuda(cuda), device(device), context(context), sums(sums) {
  use();
  for (Lane lane : {compute, gather, reduce, copies})
    cuda.check(cuda.streamCreateWithPriority(&streams[lane], cudaStreamNonBlocking,
                                             lane == compute ? 0 : urgent),
               "create a stream");
}

CudaQueue::~CudaQueue() {
  use();
  for (CudaStream stream : streams)
    if (stream)
      cuda.streamDestroy(stream);
}

uint32_t CudaQueue::stamp(Lane lane) const { return timeline ? timeline->stamp(lane) : 0; }

void CudaQueue::finish(const std::function<void()> &idle) const {
  use();
  double began = monotonicSeconds();
  for (CudaStream stream : streams) {
    CudaResult result;
    while ((result = cuda.streamQuery(stream)) == cudaNotReady) {
      if (monotonicSeconds() - began < pollSeconds) {
        pauseBriefly();
        continue;
      }
      idle();
      use(); // The call of idle() may have changed the context that is current.
      timespec nap = {0, napNanoseconds};
      nanosleep(&nap, nullptr);
    }
    cuda.check(result, "run the launched work on a GPU");
  }
}

CudaMark::CudaMark(const CudaQueue &queue) : queue(queue) {
  queue.use();
  queue.driver().check(queue.driver().eventCreate(&event, cudaEventNoTiming), "create an event");
}

CudaMark::~CudaMark() {
  queue.use();
  queue.driver().eventDestroy(event);
}

void CudaMark::record(CudaQueue::Lane lane) const {
  queue.use();
  queue.driver().check(queue.driver().eventRecord(event, queue.stream(lane)), "record an event");
}

void CudaMark::hold(const CudaQueue &other, CudaQueue::Lane lane) const {
  other.use();
  other.driver().check(other.driver().streamWaitEvent(other.stream(lane), event, 0),
                       "make a stream wait for an event");
}
