//===- CudaDevice.h - NVIDIA GPUs ---------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs an artifact's kernels on CUDA devices through the driver's interface. A rank's arena is one
// allocation in device memory; its host arena is one allocation of mapped host memory. Commands are
// enqueued on streams (CudaQueue.h). The host accesses the arena by copies through a pinned staging
// buffer.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUDADEVICE_H
#define FSDPRT_DEVICE_CUDA_CUDADEVICE_H

#include "device/DeviceFactory.h"

namespace fsdprt {

/// Creates a device for each rank. Ranks are assigned to the machine's GPUs cyclically. Throws
/// Error if there is no driver, no GPU can run the artifact's code, or the device memory is too
/// small. These conditions are checked before an arena is allocated.
std::vector<std::unique_ptr<Device>>
makeCudaDevices(const Artifact &artifact, const fb::Layout &layout, const DeviceOptions &options);

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDADEVICE_H
