//===- DeviceFactory.cpp - Creates the devices of ranks ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "device/DeviceFactory.h"
#include "core/Error.h"
#include "device/cpu/CpuDevice.h"
#include "device/cuda/CudaDevice.h"
#include <atomic>

using namespace fsdprt;

static std::atomic<EmulatedDeviceFactory> emulatedDevices{nullptr};

void fsdprt::registerEmulatedDevices(EmulatedDeviceFactory factory) { emulatedDevices = factory; }

bool fsdprt::hasEmulatedDevices() { return emulatedDevices.load() != nullptr; }

std::unique_ptr<DeviceGraph> Device::makeGraph(const std::vector<Device *> &) {
  badInput("expected a device that can record graphs of commands, found one that cannot");
}

std::vector<std::unique_ptr<Device>> fsdprt::makeDevices(DeviceKind kind, const Artifact &artifact,
                                                         const fb::Layout &layout,
                                                         const DeviceOptions &options) {
  if (kind == DeviceKind::cuda)
    return makeCudaDevices(artifact, layout, options);
  std::vector<std::unique_ptr<Device>> devices(options.ranks);
  for (std::unique_ptr<Device> &device : devices)
    if (kind == DeviceKind::cpu)
      device = std::make_unique<CpuDevice>(artifact, layout, options.numCopies);
    else
      device = emulatedDevices.load()(artifact, options.numCopies);
  return devices;
}
