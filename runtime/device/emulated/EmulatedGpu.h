//===- EmulatedGpu.h - A rank's GPU, emulated -------------------*- C++ -*-===//
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

#ifndef FSDPRT_DEVICE_EMULATED_EMULATEDGPU_H
#define FSDPRT_DEVICE_EMULATED_EMULATEDGPU_H

#include "device/Gpu.h"
#include <memory>

namespace fsdprt {

class EmulatedGpu : public Gpu {
public:
  /// Of an artifact for a GPU, which has to outlive it.
  explicit EmulatedGpu(const Artifact &artifact);
  ~EmulatedGpu() override;

  void attach(const Arena &arena) override;
  void launch(const fb::Kernel &kernel, const fb::Phase &phase, void *const *bindings) override;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_EMULATED_EMULATEDGPU_H
