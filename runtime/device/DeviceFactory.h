//===- DeviceFactory.h - Creates the devices of ranks -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The emulator is not part of the runtime's library. A program that links it registers a function
// that creates emulated devices (fsdprt_register_emulator()).
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_DEVICEFACTORY_H
#define FSDPRT_DEVICE_DEVICEFACTORY_H

#include "device/Device.h"

namespace fsdprt {

enum class DeviceKind { cpu, cuda, emulated };

struct DeviceOptions {
  uint32_t ranks = 1;     ///< number of ranks of this process
  uint32_t numCopies = 0; ///< upper bound of copy numbers
  uint32_t firstDevice =
      0; ///< cuda: device of the first rank; later ranks take the next, cyclically
};

/// Creates a device for each rank. `artifact` must contain code for `kind`, and outlive the devices
/// like `layout`. Throws Error on failure, before memory is allocated for arenas.
std::vector<std::unique_ptr<Device>> makeDevices(DeviceKind kind, const Artifact &artifact,
                                                 const fb::Layout &layout,
                                                 const DeviceOptions &options);

/// Creates the emulated device of one rank. The artifact must outlive the device.
using EmulatedDeviceFactory = std::unique_ptr<Device> (*)(const Artifact &artifact,
                                                          uint32_t numCopies);
/// Sets the function that creates emulated devices. Existing sessions keep their devices.
void registerEmulatedDevices(EmulatedDeviceFactory factory);
/// Returns true if registerEmulatedDevices() has been called.
bool hasEmulatedDevices();

} // namespace fsdprt

#endif // FSDPRT_DEVICE_DEVICEFACTORY_H
