//===- EmulatedDevice.h - An emulated GPU --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the PTX of an artifact on an emulator. Each rank has its own emulator. The global memory of
// this emulator is the arena of the rank. All commands except kernels are executed in the same way
// as on a CPU. If the emulator detects a fault while it runs a kernel, launch() throws Error.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_EMULATED_EMULATEDDEVICE_H
#define FSDPRT_DEVICE_EMULATED_EMULATEDDEVICE_H

#include "device/cpu/HostDevice.h"
#include <memory>

namespace fsdprt {

class EmulatedDevice : public HostDevice {
public:
  /// `artifact` must contain code for a GPU, and must outlive the device.
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
