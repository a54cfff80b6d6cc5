//===- Gpu.h - Where a rank's kernels run -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_GPU_H
#define FSDPRT_EXECUTE_GPU_H

#include "artifact/Artifact.h"
#include "device/Arena.h"

namespace fsdprt {

/// The GPU of one rank. What goes wrong in a kernel is an Error, of its launch or of a later finish().
class Gpu {
public:
  virtual ~Gpu() = default;
  /// Where the rank's arena has to be; null: anywhere.
  virtual ArenaSource *arenaSource() { return nullptr; }
  /// Before the first launch. The arena outlives what is launched.
  virtual void attach(const Arena &arena) = 0;
  /// Begins a phase of a kernel, behind those launched before. `bindings`: places in the arena, of the kernel's bindings and its scratch.
  virtual void launch(const fb::Kernel &kernel, const fb::Phase &phase, void *const *bindings) = 0;
  /// Zeros at, and a copy between, places in the arena, behind what was launched; false: finish() and let the host do it.
  virtual bool fill(std::byte *, uint64_t) { return false; }
  virtual bool copy(std::byte *, const std::byte *, uint64_t) { return false; }
  /// Returns when all that was launched has ended; the host may read its results then, and write its operands.
  virtual void finish() {}
};

/// How many pointers a launch of a kernel has: bindings, and the scratch where it has some.
inline uint32_t pointersOf(const fb::Kernel &kernel) {
  return (kernel.binding_bytes() ? kernel.binding_bytes()->size() : 0) + (kernel.shared_bytes() != 0);
}

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_GPU_H
