//===- CudaRecording.h - A CUDA graph of all ranks' commands ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Between begin() and end(), the work that the ranks enqueue on their streams is not executed.
// Instead, the work of all ranks is captured in a single graph. Any thread of the ranks may enqueue
// work. If a transfer stream has waited for a compute stream since begin(), this compute stream
// must wait for the transfer stream before end() is called.
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
  /// Ends the capture and discards the graph. After a failure, cancel() must be called instead of
  /// end().
  void cancel() noexcept override;
  bool isReady() const override { return runs != nullptr; }

private:
  const CudaQueue &first() const { return *queues.front(); }

  std::vector<const CudaQueue *> queues;
  /// one mark per queue, with which begin() and end() join all streams to the capture
  std::vector<std::unique_ptr<CudaMark>> marks;
  CudaGraphExec runs = nullptr;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDARECORDING_H
