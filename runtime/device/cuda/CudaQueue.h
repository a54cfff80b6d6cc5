//===- CudaQueue.h - The streams of a rank on a GPU -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank uses four streams of its GPU. The first stream is for kernels, the second for gathers and
// broadcasts, the third for reductions, and the fourth for asynchronous copies. A mark is an event
// that is recorded on one stream. Other streams can wait for the mark. The host waits for streams
// only in finish().
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

  /// `sums` must have been created in `context`. `sums` may be null if the rank launches no sums.
  CudaQueue(const CudaDriver &cuda, int device, CudaContext context, const CudaSums *sums);
  ~CudaQueue();
  CudaQueue(const CudaQueue &) = delete;
  CudaQueue &operator=(const CudaQueue &) = delete;

  const CudaDriver &driver() const { return cuda; }
  const CudaSums &getSums() const { return *sums; }
  int getDevice() const { return device; }
  CudaContext getContext() const { return context; }
  /// Makes the context of the rank's GPU current for the calling thread.
  void use() const { cuda.contextSetCurrent(context); }
  CudaStream stream(Lane lane) const { return streams[lane]; }
  /// Sets the timeline that stamp() uses. `given` may be null.
  void setTimeline(CudaTimeline *given) { timeline = given; }
  /// Enqueues a time stamp on a stream. Returns its number, or 0 if there is no timeline.
  uint32_t stamp(Lane lane) const;
  /// Waits until all streams are idle. During the wait, calls idle() again and again. Throws Error
  /// if work on a stream has failed.
  void finish(const std::function<void()> &idle) const;

private:
  const CudaDriver &cuda;
  int device;
  CudaContext context;
  const CudaSums *sums;
  CudaTimeline *timeline = nullptr;
  std::array<CudaStream, 4> streams{};
};

/// An event that is recorded on streams of `queue`.
class CudaMark {
public:
  explicit CudaMark(const CudaQueue &queue);
  ~CudaMark();
  CudaMark(const CudaMark &) = delete;
  CudaMark &operator=(const CudaMark &) = delete;

  void record(CudaQueue::Lane lane) const;
  /// Makes a stream of `other` wait for the last record(). `other` may belong to another rank.
  void hold(const CudaQueue &other, CudaQueue::Lane lane) const;

private:
  const CudaQueue &queue;
  CudaEvent event = nullptr;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDAQUEUE_H
