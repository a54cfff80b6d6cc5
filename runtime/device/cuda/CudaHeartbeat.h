//===- CudaHeartbeat.h - That a GPU goes on with what it has ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The host is far ahead of a GPU, by a whole step where that is one graph. Whether the GPU makes
// progress it sees in a word of its own memory, which the GPU writes as it comes by, within graphs,
// too: a sum of one source, which is the number of the beat since the run began: so where the GPU
// is among its launches is known to one beat.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUDAHEARTBEAT_H
#define FSDPRT_DEVICE_CUDA_CUDAHEARTBEAT_H

#include "device/cuda/CudaQueue.h"

namespace fsdprt {

class CudaHeartbeat {
public:
  /// So many launches are a beat.
  static constexpr uint32_t launches = 32;
  /// So many are numbered; then numbers begin again with 1.
  static constexpr uint32_t numbers = 4096;

  explicit CudaHeartbeat(const CudaQueue &queue);
  ~CudaHeartbeat();
  CudaHeartbeat(const CudaHeartbeat &) = delete;
  CudaHeartbeat &operator=(const CudaHeartbeat &) = delete;

  /// Where nothing is on the compute stream: there was no beat so far, and launches are counted
  /// anew.
  void begin();
  /// After a launch on the compute stream.
  void count();
  /// The number of the last beat, 0: none. Another value than before: there was a beat.
  uint32_t read() const;

private:
  const CudaQueue &queue;
  float *word = nullptr; // pinned; the numbers are after it
  uint32_t counted = 0;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDAHEARTBEAT_H
