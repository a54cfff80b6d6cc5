//===- CudaRecording.h - What ranks do on GPUs, as one graph ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Between begin() and end() what ranks put on their streams is kept instead of done: as one graph
// of all of them, which launch() does as a whole. Threads of the ranks may do that; streams of
// transfers have to be waited for by the compute stream that they started after it.
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
  /// Of ranks whose queues these are, and which outlive it.
  explicit CudaRecording(std::vector<const CudaQueue *> queues);
  ~CudaRecording() override;
  CudaRecording(const CudaRecording &) = delete;
  CudaRecording &operator=(const CudaRecording &) = delete;

  /// All three throw Error.
  void begin() override;
  void end() override;
  /// After it, on the first rank's compute stream.
  void launch() const override;
  /// Instead of end(): what was kept is forgotten.
  void cancel() noexcept override;
  bool isReady() const override { return runs != nullptr; }

private:
  const CudaQueue &first() const { return *queues.front(); }

  std::vector<const CudaQueue *> queues;
  std::vector<std::unique_ptr<CudaMark>> marks; // of each: begins together, ends together
  CudaGraphExec runs = nullptr;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDARECORDING_H
