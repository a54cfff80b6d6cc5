//===- CudaDevice.h - NVIDIA GPUs ---------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels of an artifact on CUDA devices, through the driver's own interface. A rank has its arena
// in one allocation of the device, what is offloaded in one of the host that the device reaches,
// and streams (device/CudaQueue.h). The host sees the arena by copies through memory that is pinned
// for that. Ranks of a process go round its devices.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUDADEVICE_H
#define FSDPRT_DEVICE_CUDA_CUDADEVICE_H

#include "device/DeviceFactory.h"

namespace fsdprt {

/// Makes one for each rank; they go round the machine's devices. Throws Error when there is no
/// driver, no device that runs the artifact's code, or not enough memory on one; no arena is
/// allocated before all of that was checked.
std::vector<std::unique_ptr<Device>>
makeCudaDevices(const Artifact &artifact, const fb::Layout &layout, const DeviceOptions &options);

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDADEVICE_H
