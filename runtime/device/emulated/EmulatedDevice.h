//===- EmulatedDevice.h - An emulated GPU --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs an artifact's PTX on an emulator; each rank has one. The emulator's global memory is the
// rank's arena, so that everything except kernels runs as on the CPU. A fault that the emulator
// finds in a kernel is thrown as Error.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_EMULATED_EMULATEDDEVICE_H
#define FSDPRT_DEVICE_EMULATED_EMULATEDDEVICE_H

#include "device/cpu/HostDevice.h"
#include <memory>

namespace fsdprt {

class EmulatedDevice : public HostDevice {
public:
  /// `artifact` must be for a GPU and outlive the device.
  EmulatedDevice(const Artifact &artifact, uint32_t numCopies);
  ~EmulatedDevice() override;

  void attach(const Arena &arena, WorkerPool &pool) override;
  void launch(uint32_t kernel, uint32_t phase, void *const *bindings) override;

private:
  struct State;
  const Artifact &artifact;
  std::unique_ptr<State> state;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_EMULATED_EMULATEDDEVICE_H
