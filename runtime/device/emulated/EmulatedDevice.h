//===- EmulatedDevice.h - A rank's GPU, emulated -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the PTX of an artifact on the emulator, one for each rank. Its global memory is the rank's
// arena, so that everything that is no kernel happens as on the CPU. What the emulator finds wrong
// in a kernel is an Error.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_EMULATED_EMULATEDDEVICE_H
#define FSDPRT_DEVICE_EMULATED_EMULATEDDEVICE_H

#include "device/cpu/HostDevice.h"
#include <memory>

namespace fsdprt {

class EmulatedDevice : public HostDevice {
public:
  /// Of an artifact for a GPU, which has to outlive it.
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
