//===- Nvtx.h - Ranges for profiling tools ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// NVIDIA's profiling tools, such as Nsight Systems, show ranges that a process pushes through NVTX.
// A tool sets NVTX_INJECTION64_PATH to the path of its library. The runtime loads this library and
// calls its function InitializeInjectionNvtx2(). The argument is a function that returns export
// tables, through which the tool writes addresses of its functions into slots of the runtime. If
// the variable is not set, no library is loaded.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_NVTX_H
#define FSDPRT_DEVICE_CUDA_NVTX_H

namespace fsdprt {

/// Pushes and pops ranges of the calling thread. Ranges can be nested.
class Nvtx {
public:
  /// Returns null if there is no tool, or if the tool has not set the slots for ranges.
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
