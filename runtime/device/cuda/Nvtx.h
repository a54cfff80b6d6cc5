//===- Nvtx.h - Ranges for profiling tools ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A process can mark ranges of time by calls of NVTX functions. NVIDIA's profiling tools, such as
// Nsight Systems, display these ranges. The tool that starts the process sets the environment
// variable NVTX_INJECTION64_PATH to the path of a library of the tool. The runtime loads this
// library and calls its function InitializeInjectionNvtx2(). The argument of this call is a
// function that returns export tables. Through these tables, the tool stores the addresses of its
// functions in slots of the runtime. If the variable is not set, no library is loaded.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_NVTX_H
#define FSDPRT_DEVICE_CUDA_NVTX_H

namespace fsdprt {

/// Begins and ends ranges of the calling thread. A range may contain other ranges.
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
