//===- CudaDriver.cpp - Declarations of the CUDA driver ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "device/cuda/CudaDriver.h"
#include <algorithm>
#include <array>
#include <cstdlib>

using namespace fsdprt;

CudaDriver::CudaDriver(const char *user, Use use) {
  SharedLibrary library(user, "CUDA's driver", "FSDPRT_CUDA_LIBRARY", "libcuda.so.1");
  bool transfers = use == Use::transfers, kernels = use == Use::kernels;
#define FSDPRT_ALWAYS(NAME, member, ...) library.find(#NAME, true, member);
#define FSDPRT_TRANSFER(NAME, member, ...) library.find(#NAME, transfers, member);
#define FSDPRT_KERNEL(NAME, member, ...) library.find(#NAME, kernels, member);
  FSDPRT_CUDA_FUNCTIONS(FSDPRT_ALWAYS)
  FSDPRT_CUDA_TRANSFER_FUNCTIONS(FSDPRT_TRANSFER)
  FSDPRT_CUDA_KERNEL_FUNCTIONS(FSDPRT_KERNEL)
#define FSDPRT_OPTIONAL(NAME, member, ...) library.find(#NAME, false, member);
  FSDPRT_CUDA_OPTIONAL_FUNCTIONS(FSDPRT_OPTIONAL)
  // If the driver has no cuFuncLoad, a kernel is loaded before its first launch only if the driver
  // loads all kernels of each module at once.
  if (!functionLoad)
    setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  check(init(0), "find devices");
  check(deviceGetCount(&count), "count devices");
  if (count < 1)
    badInput("%s needs a CUDA device: expected at least one, found none%s", user,
             std::getenv("CUDA_VISIBLE_DEVICES") ? " (CUDA_VISIBLE_DEVICES is set)" : "");
}

CudaFunction CudaDriver::load(CudaModule module, const char *name, const char *what) const {
  CudaFunction function = nullptr;
  check(moduleGetFunction(&function, module, name), what);
  if (functionLoad)
    check(functionLoad(function), "load a kernel");
  return function;
}

CudaModule CudaDriver::translate(const char *ptx, const char *what) const {
  std::array<char, 1024> log{};
  int options[] = {cudaJitErrorLog, cudaJitErrorLogBytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size() - 1)};
  CudaModule module = nullptr;
  CudaResult result = moduleLoadDataEx(&module, ptx, 2, options, values);
  if (result == cudaOk)
    return module;
  std::string said = log.data();
  std::replace_if(said.begin(), said.end(), [](unsigned char c) { return c < ' '; }, ' ');
  said.erase(said.find_last_not_of(' ') + 1);
  throw CudaFailure(result, format("cannot load %s: %s%s%s", what, reason(result).c_str(),
                                   said.empty() ? "" : ": ", said.c_str()));
}

std::string CudaDriver::versionText() const {
  int code = 0;
  check(driverGetVersion(&code), "query the driver's version");
  return format("%d.%d", code / 1000, code % 1000 / 10);
}

std::string CudaDriver::reason(CudaResult result) const {
  const char *meaning = nullptr;
  getErrorString(result, &meaning);
  return format("CUDA reports error %d, '%s'", static_cast<int>(result), meaning ? meaning : "");
}

void CudaDriver::check(CudaResult result, const char *what) const {
  if (result != cudaOk)
    throw CudaFailure(result, format("cannot %s: %s", what, reason(result).c_str()));
}
