//===- CudaRecording.h - A CUDA graph of all ranks' commands ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Between begin() and end(), the work that the ranks enqueue on their streams is not executed. It
// is captured as one graph, which contains the work of all ranks. The work may be enqueued by any
// thread of the ranks. Before end(), each compute stream must wait for all transfer streams that
// have waited for it.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUDARECORDING_H
#define FSDPRT_DEVICE_CUDA_CUDARECORDING_H

#include "device/Device.h"
#include "device/cuda/CudaQueue.h"
#include <memory>
#include <vector>

namespace fsdprt {

class CudaRecording : public DeviceGraph {
public:
  /// Creates a recording of the streams of `queues`. The queues must outlive the recording.
  explicit CudaRecording(std::vector<const CudaQueue *> queues);
  ~CudaRecording() override;
  CudaRecording(const CudaRecording &) = delete;
  CudaRecording &operator=(const CudaRecording &) = delete;

  /// begin(), end() and launch() throw Error if they fail.
  void begin() override;
  void end() override;
  /// Enqueues the graph on the compute stream of the first rank. end() must have been called.
  void launch() const override;
  /// Ends the capture and discards the graph. Must be called instead of end() after a failure.
  void cancel() noexcept override;
  bool isReady() const override { return runs != nullptr; }

private:
  const CudaQueue &first() const { return *queues.front(); }

  std::vector<const CudaQueue *> queues;
  /// one mark for each queue; they connect the compute streams of the ranks
  std::vector<std::unique_ptr<CudaMark>> marks;
  CudaGraphExec runs = nullptr;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDARECORDING_H
