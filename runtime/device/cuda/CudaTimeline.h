//===- CudaTimeline.h - When a rank's GPU did what --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Stamps are events with a time, on the streams of a rank: what comes before one of a stream has
// ended then, and what comes after it has not begun. They are all made before the first run, and
// numbered from 1 in each:
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

  /// A run begins, whose streams stand still: finds out which time of the host is which of the GPU.
  void begin(const std::function<void()> &idle) override;
  uint32_t stampCommand() override { return stamp(CudaQueue::compute); }
  /// Puts one on a stream, and returns its number. May be called by any thread. A stream that has
  /// failed says so at the next call.
  uint32_t stamp(CudaQueue::Lane lane) noexcept;
  /// Nanoseconds of the host's monotonic clock at which a stamp was passed, which has been waited
  /// for.
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
