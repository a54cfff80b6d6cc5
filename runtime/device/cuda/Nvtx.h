//===- Nvtx.h - Ranges for tools that watch a process -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// NVIDIA's tools (Nsight Systems and others) show what a process says that it is doing. One that
// watches names a library of its own in NVTX_INJECTION64_PATH; this loads it, and offers it tables
// of slots to put functions into:
//
//     InitializeInjectionNvtx2(table by number) -> callbacks: table of a module -> slots, of which
//     it fills those it wants
//
// What follows is a declaration of our own of that interface. Without a library nothing is loaded,
// and nobody is asked again.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_NVTX_H
#define FSDPRT_DEVICE_CUDA_NVTX_H

namespace fsdprt {

/// Ranges of a thread lie in each other.
class Nvtx {
public:
  /// Null where no tool watches, or none wants ranges.
  static const Nvtx *find();

  void push(const char *name) const { pushRange(name); }
  void pop() const { popRange(); }

private:
  Nvtx(int (*push)(const char *), int (*pop)()) : pushRange(push), popRange(pop) {}

  int (*pushRange)(const char *);
  int (*popRange)();
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_NVTX_H
