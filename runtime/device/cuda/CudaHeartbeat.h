//===- CudaHeartbeat.h - Progress of a GPU ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The host enqueues work long before a GPU executes this work, so the host cannot see how far the
// GPU is. To make the progress of the GPU visible, a small kernel is enqueued after every
// `launches` launches, even if the launches are recorded in a graph. This kernel is a sum
// (CudaSums.h) that has only one source. The kernel copies the number of the heartbeat to pinned
// host memory. With this number, the host knows how many launches the GPU has executed, except for
// the last `launches` - 1.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUDAHEARTBEAT_H
#define FSDPRT_DEVICE_CUDA_CUDAHEARTBEAT_H

#include "device/cuda/CudaQueue.h"

namespace fsdprt {

class CudaHeartbeat {
public:
  static constexpr uint32_t launches = 32;
  /// Largest number of a heartbeat. The heartbeat after the heartbeat with this number has the
  /// number 1.
  static constexpr uint32_t numbers = 4096;

  explicit CudaHeartbeat(const CudaQueue &queue);
  ~CudaHeartbeat();
  CudaHeartbeat(const CudaHeartbeat &) = delete;
  CudaHeartbeat &operator=(const CudaHeartbeat &) = delete;

  /// Sets the heartbeat and the count of launches to 0. The compute stream must be idle.
  void begin();
  /// Counts one launch on the compute stream. If the count is a multiple of `launches`, enqueues a
  /// heartbeat.
  void count();
  /// Returns the number of the last heartbeat, or 0 if there was none. If this number changes, the
  /// GPU makes progress.
  uint32_t read() const;

private:
  const CudaQueue &queue;
  float *word = nullptr; ///< pinned: number of the last heartbeat, and the constants 1, 2, ...
  uint32_t counted = 0;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDAHEARTBEAT_H
