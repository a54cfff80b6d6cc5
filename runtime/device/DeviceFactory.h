//===- DeviceFactory.h - Creates the devices of ranks -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Creates devices. The library of the runtime does not contain the emulator. A program that is
// linked with the emulator calls fsdprt_register_emulator(). This call registers a function that
// creates emulated devices.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_DEVICEFACTORY_H
#define FSDPRT_DEVICE_DEVICEFACTORY_H

#include "device/Device.h"

namespace fsdprt {

enum class DeviceKind { cpu, cuda, emulated };

/// Allocates arenas on GPUs in place of the driver.
class DeviceAllocator {
public:
  virtual ~DeviceAllocator() = default;
  /// Allocates memory on the GPU whose context is current. Returns null if the driver must allocate
  /// it. Throws Error.
  virtual std::byte *allocate(uint64_t bytes) = 0;
  virtual void release(std::byte *memory) = 0;
};

struct DeviceOptions {
  uint32_t ranks = 1;     ///< number of ranks that this process has
  uint32_t numCopies = 0; ///< asynchronous copies have the numbers 0 to numCopies - 1
  /// Rank i of this process uses GPU (firstDevice + i) modulo the number of GPUs.
  uint32_t firstDevice = 0;
  DeviceAllocator *allocator = nullptr; ///< of arenas; null for the driver
};

/// Creates a device for each rank. `artifact` must contain code for devices of this kind.
/// `artifact` and `layout` must outlive the devices. Throws Error if a device cannot be created.
/// This function does not allocate the arenas.
std::vector<std::unique_ptr<Device>> makeDevices(DeviceKind kind, const Artifact &artifact,
                                                 const fb::Layout &layout,
                                                 const DeviceOptions &options);

/// A function that creates the emulated device of one rank. The artifact must outlive this device.
using EmulatedDeviceFactory = std::unique_ptr<Device> (*)(const Artifact &artifact,
                                                          uint32_t numCopies);
/// Sets the function that creates emulated devices. Existing sessions keep their devices.
void registerEmulatedDevices(EmulatedDeviceFactory factory);
/// Returns true if registerEmulatedDevices() has been called.
bool hasEmulatedDevices();

} // namespace fsdprt

#endif // FSDPRT_DEVICE_DEVICEFACTORY_H
