//===- CudaQueue.h - The streams of a rank on a GPU -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a rank does on its GPU is on four streams: what it computes, gathers and broadcasts,
// reductions, and copies between its arenas. A mark is a place on one of them, which others can be
// put after it. The host waits for none of it but in finish().
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUDAQUEUE_H
#define FSDPRT_DEVICE_CUDA_CUDAQUEUE_H

#include "device/cuda/CudaDriver.h"
#include <array>
#include <functional>

namespace fsdprt {

class CudaSums;
class CudaTimeline;

class CudaQueue {
public:
  enum Lane { compute, gather, reduce, copies };

  /// `sums` of the same context, which is the device's; null where nobody asks for them.
  CudaQueue(const CudaDriver &cuda, int device, CudaContext context, const CudaSums *sums);
  ~CudaQueue();
  CudaQueue(const CudaQueue &) = delete;
  CudaQueue &operator=(const CudaQueue &) = delete;

  const CudaDriver &driver() const { return cuda; }
  const CudaSums &getSums() const { return *sums; }
  int getDevice() const { return device; }
  CudaContext getContext() const { return context; }
  /// The next calls of this thread are for the rank's GPU.
  void use() const { cuda.contextSetCurrent(context); }
  CudaStream stream(Lane lane) const { return streams[lane]; }
  /// Who is to know when something ran; null: nobody asks for that.
  void setTimeline(CudaTimeline *given) { timeline = given; }
  /// Puts a stamp of the timeline on a stream, and returns its number; 0 without one.
  uint32_t stamp(Lane lane) const;
  /// Returns when all of it has ended; calls `idle` now and then meanwhile. Throws Error where
  /// something failed.
  void finish(const std::function<void()> &idle) const;

private:
  const CudaDriver &cuda;
  int device;
  CudaContext context;
  const CudaSums *sums;
  CudaTimeline *timeline = nullptr;
  std::array<CudaStream, 4> streams{};
};

/// A place on a stream, the last that record() was called at.
class CudaMark {
public:
  explicit CudaMark(const CudaQueue &queue);
  ~CudaMark();
  CudaMark(const CudaMark &) = delete;
  CudaMark &operator=(const CudaMark &) = delete;

  void record(CudaQueue::Lane lane) const;
  /// Puts what comes next on a stream, perhaps of another rank, after it.
  void hold(const CudaQueue &other, CudaQueue::Lane lane) const;

private:
  const CudaQueue &queue;
  CudaEvent event = nullptr;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDAQUEUE_H
