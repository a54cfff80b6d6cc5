//===- GpuFactory.h - Makes emulated GPUs, where a program can ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The emulator is no part of the runtime's product library. A program that links it registers a
// function that makes an emulated GPU (fsdprt_register_emulator()); sessions find it here.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_GPUFACTORY_H
#define FSDPRT_DEVICE_GPUFACTORY_H

#include "device/Gpu.h"

namespace fsdprt {

/// Makes the GPU of one rank, for an artifact that has to outlive it.
using GpuFactory = std::unique_ptr<Gpu> (*)(const Artifact &artifact);

/// Sets the function that makes emulated GPUs. Sessions that exist keep theirs.
void registerEmulatedGpus(GpuFactory factory);
/// Returns the registered function; null when the program has no emulator.
GpuFactory getEmulatedGpus();

} // namespace fsdprt

#endif // FSDPRT_DEVICE_GPUFACTORY_H
