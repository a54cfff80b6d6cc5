//===- CudaTimeline.h - Times of work on a rank's streams -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A time stamp is a timed event on a stream of a rank. When a stream reaches a stamp, all earlier
// work on this stream has ended, and no later work on it has begun. All stamps are created before
// the first run. In each run, the stamps are numbered from 1:
//
//   host       begin() | stamp, launch, stamp, ... | CudaQueue::finish() | timeOf(each)
//   compute    base       1    [kernel]  2
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUDATIMELINE_H
#define FSDPRT_DEVICE_CUDA_CUDATIMELINE_H

#include "device/Device.h"
#include "device/cuda/CudaQueue.h"
#include <atomic>
#include <vector>

namespace fsdprt {

class CudaTimeline : public DeviceTimeline {
public:
  CudaTimeline(const CudaQueue &queue, uint64_t stamps);
  ~CudaTimeline() override;
  CudaTimeline(const CudaTimeline &) = delete;
  CudaTimeline &operator=(const CudaTimeline &) = delete;

  /// Starts a run, and measures the offset between the clock of the GPU and the clock of the host.
  /// All streams must be idle.
  void begin(const std::function<void()> &idle) override;
  uint32_t stampCommand() override { return stamp(CudaQueue::compute); }
  /// Enqueues a time stamp on a stream, and returns the number of this stamp. Returns 0 if all
  /// stamps are used. stamp() may be called by any thread. If the stream has an error, a later call
  /// of another function reports it.
  uint32_t stamp(CudaQueue::Lane lane) noexcept;
  /// Returns the time at which the stream reached a stamp, in nanoseconds of the host's monotonic
  /// clock. The host must have waited until the stream was idle.
  uint64_t timeOf(uint32_t stamp) const override;

private:
  const CudaQueue &queue;
  CudaEvent base = nullptr;
  std::vector<CudaEvent> events;
  std::atomic<uint32_t> last{0};
  uint64_t hostBase = 0;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDATIMELINE_H
