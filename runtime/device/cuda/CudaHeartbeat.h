//===- CudaHeartbeat.h - Progress of a GPU ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The host enqueues work far ahead of a GPU, by a whole step for a CUDA graph. To observe the GPU's
// progress, a small kernel after every `launches` launches, also within graphs, writes the number
// of the heartbeat to pinned host memory. It is a sum of one source, the number, and tells the
// position among the launches of the run to within one heartbeat.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUDAHEARTBEAT_H
#define FSDPRT_DEVICE_CUDA_CUDAHEARTBEAT_H

#include "device/cuda/CudaQueue.h"

namespace fsdprt {

class CudaHeartbeat {
public:
  /// Launches per heartbeat.
  static constexpr uint32_t launches = 32;
  /// Numbers of heartbeats, after which they start from 1 again.
  static constexpr uint32_t numbers = 4096;

  explicit CudaHeartbeat(const CudaQueue &queue);
  ~CudaHeartbeat();
  CudaHeartbeat(const CudaHeartbeat &) = delete;
  CudaHeartbeat &operator=(const CudaHeartbeat &) = delete;

  /// Resets the heartbeat and the count of launches. The compute stream must be idle.
  void begin();
  /// Counts a launch on the compute stream, and enqueues a heartbeat if one is due.
  void count();
  /// Returns the number of the last heartbeat, 0: none. A changed value means progress.
  uint32_t read() const;

private:
  const CudaQueue &queue;
  float *word = nullptr; // pinned: the last heartbeat, then the numbers as sources
  uint32_t counted = 0;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDAHEARTBEAT_H
