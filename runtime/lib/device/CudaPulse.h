//===- CudaPulse.h - That a GPU goes on with what it has --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The host is far ahead of a GPU, by a whole step where that is one graph. Whether the GPU makes progress it sees in a word of its own memory,
// which the GPU writes as it comes by, within graphs, too: a sum of one source, which is one of some numbers, each another than that before it.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDAPULSE_H
#define FSDPRT_DEVICE_CUDAPULSE_H

#include "device/CudaQueue.h"

namespace fsdprt {

class CudaPulse {
public:
  /// So many launches are a beat.
  static constexpr uint32_t launches = 32;

  explicit CudaPulse(const CudaQueue &queue);
  ~CudaPulse();
  CudaPulse(const CudaPulse &) = delete;
  CudaPulse &operator=(const CudaPulse &) = delete;

  /// Behind a launch on the compute stream.
  void count();
  /// Another value than before: there was a beat.
  uint32_t look() const;

private:
  static constexpr uint32_t numbers = 64;
  const CudaQueue &queue;
  float *word = nullptr; // pinned; the numbers are behind it
  uint32_t counted = 0;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDAPULSE_H
