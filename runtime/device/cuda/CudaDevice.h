//===- CudaDevice.h - NVIDIA GPUs ---------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the kernels of an artifact on GPUs. CudaDevice uses the interface of the CUDA driver, and
// not the CUDA runtime. An arena is a single allocation in device memory. If states are offloaded,
// the arena has a second part, which is an allocation of host memory that is mapped for the GPU.
// Commands are enqueued on streams (CudaQueue.h). To read or write device memory, the host copies
// data through a staging buffer, which is pinned.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUDADEVICE_H
#define FSDPRT_DEVICE_CUDA_CUDADEVICE_H

#include "device/DeviceFactory.h"

namespace fsdprt {

/// Creates a device for each rank. Rank i of this process uses GPU (options.firstDevice + i) modulo
/// the number of GPUs. Throws Error if there is no driver, if a GPU cannot run the code of the
/// artifact, or if the memory of a GPU is too small for the arenas. Allocates no arena.
std::vector<std::unique_ptr<Device>>
makeCudaDevices(const Artifact &artifact, const fb::Layout &layout, const DeviceOptions &options);

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDADEVICE_H
