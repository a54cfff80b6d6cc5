//===- CudaDevice.h - NVIDIA GPUs ---------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the kernels of an artifact on CUDA devices through the interface of the driver. An arena is
// one allocation in device memory and, if states are offloaded, one allocation of mapped host
// memory. Commands are enqueued on streams (CudaQueue.h). The host accesses device memory by copies
// through a pinned staging buffer.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUDADEVICE_H
#define FSDPRT_DEVICE_CUDA_CUDADEVICE_H

#include "device/DeviceFactory.h"

namespace fsdprt {

/// Creates a device for each rank. Ranks are assigned to the GPUs of the machine cyclically. Throws
/// Error if there is no driver, if a GPU cannot run the artifact's code, or if its memory is too
/// small for the arenas. Allocates no arena.
std::vector<std::unique_ptr<Device>>
makeCudaDevices(const Artifact &artifact, const fb::Layout &layout, const DeviceOptions &options);

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDADEVICE_H
