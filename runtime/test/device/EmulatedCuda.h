//===- EmulatedCuda.h - The emulated CUDA driver in tests ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Loads the functions of the driver from libfsdp-emulated-cuda.so, and makes a context of the
// emulated GPU current.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_DEVICE_EMULATEDCUDA_H
#define FSDPRT_TEST_DEVICE_EMULATEDCUDA_H

#include "device/cuda/CudaQueue.h"
#include "device/cuda/CudaSums.h"
#include "testing/cuda/Peers.h"
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <string>

namespace fsdprt::test {

/// Loads the emulated driver. Restores FSDPRT_CUDA_LIBRARY, since other tests use another library.
inline std::unique_ptr<CudaDriver> emulatedCuda() {
  const char *before = std::getenv("FSDPRT_CUDA_LIBRARY");
  std::string kept = before ? before : "";
  setenv("FSDPRT_CUDA_LIBRARY", FSDPRT_EMULATED_CUDA_LIBRARY, 1);
  auto driver = std::make_unique<CudaDriver>("a test", CudaDriver::Use::kernels);
  if (before)
    setenv("FSDPRT_CUDA_LIBRARY", kept.c_str(), 1);
  else
    unsetenv("FSDPRT_CUDA_LIBRARY");
  return driver;
}

/// Removes the errors and the pending work of the emulated driver.
inline void resetEmulatedCuda() {
  void *library = dlopen(FSDPRT_EMULATED_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  reinterpret_cast<void (*)()>(dlsym(library, "fsdp_emulated_cuda_reset"))();
}

/// Adds work that waits for peers to a stream of the emulated driver.
inline int enqueuePeerWork(CudaStream stream, const fsdp_emulated_cuda_work &work) {
  void *library = dlopen(FSDPRT_EMULATED_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<decltype(&fsdp_emulated_cuda_enqueue)>(
      dlsym(library, "fsdp_emulated_cuda_enqueue"))(stream, &work);
}

struct EmulatedGpuContext {
  EmulatedGpuContext() {
    cuda->check(cuda->primaryContextRetain(&context, 0), "retain");
    cuda->contextSetCurrent(context);
    sums = std::make_unique<CudaSums>(*cuda);
  }
  ~EmulatedGpuContext() {
    resetEmulatedCuda();
    cuda->contextSetCurrent(context);
    sums.reset();
    cuda->primaryContextRelease(0);
  }
  CudaPointer allocate(uint64_t bytes) const {
    CudaPointer memory = 0;
    cuda->check(cuda->memAlloc(&memory, bytes), "allocate");
    return memory;
  }
  void *pin(uint64_t bytes) const {
    void *memory = nullptr;
    cuda->check(cuda->memHostAlloc(&memory, bytes, cudaPortableMapped), "pin");
    return memory;
  }
  std::unique_ptr<CudaDriver> cuda = emulatedCuda();
  CudaContext context = nullptr;
  std::unique_ptr<CudaSums> sums;
};

} // namespace fsdprt::test

#endif // FSDPRT_TEST_DEVICE_EMULATEDCUDA_H
