//===- EmulatedGpu.h - A rank's GPU, emulated -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the PTX of an artifact on the emulator, one for each rank. Its global memory is the rank's arena, so that everything
// that is no kernel happens as on the CPU. What the emulator finds wrong in a kernel is an Error.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_EMULATEDGPU_H
#define FSDPRT_EXECUTE_EMULATEDGPU_H

#include "artifact/Artifact.h"
#include "device/Arena.h"

namespace fsdprt {

class EmulatedGpu {
public:
  /// Of an artifact for a GPU, which has to outlive it, as has the arena.
  EmulatedGpu(const Artifact &artifact, const Arena &arena);
  ~EmulatedGpu();
  EmulatedGpu(const EmulatedGpu &) = delete;
  EmulatedGpu &operator=(const EmulatedGpu &) = delete;

  /// Runs a phase of a kernel. `bindings`: places in the arena, of the kernel's bindings and its scratch.
  void launch(const fb::Kernel &kernel, const fb::Phase &phase, void *const *bindings);

private:
  struct State;
  std::unique_ptr<State> state;
  const Arena &arena;
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_EMULATEDGPU_H
