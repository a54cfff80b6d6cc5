//===- DeviceFactory.h - Makes the devices of ranks -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The emulator is no part of the runtime's product library. A program that links it registers a
// function that makes emulated devices (fsdprt_register_emulator()); sessions find it here.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_DEVICEFACTORY_H
#define FSDPRT_DEVICE_DEVICEFACTORY_H

#include "device/Device.h"

namespace fsdprt {

enum class DeviceKind { cpu, cuda, emulated };

struct DeviceOptions {
  uint32_t ranks = 1;       ///< of this process
  uint32_t numCopies = 0;   ///< numbers that copies are started with
  uint32_t firstDevice = 0; ///< cuda: the number of the first rank's; the others go round
};

/// Makes a device for each rank. The artifact, whose code the kind can run, and its layout have to
/// outlive them. Throws Error where there are none, before memory is taken for arenas.
std::vector<std::unique_ptr<Device>> makeDevices(DeviceKind kind, const Artifact &artifact,
                                                 const fb::Layout &layout,
                                                 const DeviceOptions &options);

/// Makes the device of one rank, for an artifact that has to outlive it.
using EmulatedDeviceFactory = std::unique_ptr<Device> (*)(const Artifact &artifact,
                                                          uint32_t numCopies);
/// Sets the function that makes emulated devices. Sessions that exist keep theirs.
void registerEmulatedDevices(EmulatedDeviceFactory factory);
/// Returns true if the program has registered one.
bool hasEmulatedDevices();

} // namespace fsdprt

#endif // FSDPRT_DEVICE_DEVICEFACTORY_H
