//===- Nvtx.h - Ranges for profiling tools ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// NVIDIA's tools (Nsight Systems and others) show ranges that a process announces through NVTX. A
// tool sets NVTX_INJECTION64_PATH to the path of its library. The runtime loads the library and
// offers tables of slots, into which the tool writes functions:
//
//     InitializeInjectionNvtx2(export table by number) -> callbacks: table of a module -> slots
//
// This file declares the interface. Without a tool, no library is loaded.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_NVTX_H
#define FSDPRT_DEVICE_CUDA_NVTX_H

namespace fsdprt {

/// Pushes and pops ranges, which nest within a thread.
class Nvtx {
public:
  /// Returns null if there is no tool, or if the tool does not want ranges.
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
