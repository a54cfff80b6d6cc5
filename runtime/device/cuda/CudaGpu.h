//===- CudaGpu.h - NVIDIA's GPUs --------------------------------*- C++ -*-===//
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

#ifndef FSDPRT_DEVICE_CUDA_CUDAGPU_H
#define FSDPRT_DEVICE_CUDA_CUDAGPU_H

#include "device/Gpu.h"
#include "device/cuda/CudaDriver.h"
#include <memory>
#include <vector>

namespace fsdprt {

/// One for each of `ranks` ranks of this process, whose arenas have `arenaBytes` of a device, and
/// `numCopies` copies on channels; they go round devices from `firstDevice` on. Throws Error when
/// there is no driver, no device that runs the artifact's code, or not enough memory on one; no
/// arena is allocated before all of that was seen.
std::vector<std::unique_ptr<Gpu>> makeCudaGpus(const Artifact &artifact, uint32_t ranks,
                                               uint64_t arenaBytes, uint32_t numCopies,
                                               uint32_t firstDevice);

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDAGPU_H
