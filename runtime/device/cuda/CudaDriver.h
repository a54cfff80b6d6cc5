//===- CudaDriver.h - Declarations of the CUDA driver -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The CUDA driver is loaded when it is needed. If the environment variable FSDPRT_CUDA_LIBRARY is
// set, it names the library. Otherwise the library is libcuda.so.1. This file declares the binary
// interface of the driver, so that the build does not need the headers of CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUDADRIVER_H
#define FSDPRT_DEVICE_CUDA_CUDADRIVER_H

#include "core/Error.h"
#include "core/SharedLibrary.h"
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fsdprt {

/// These types correspond to CUcontext, CUstream, CUevent, CUmodule, CUfunction, CUgraph,
/// CUgraphExec and CUdeviceptr.
using CudaContext = struct CudaContextOpaque *;
using CudaStream = struct CudaStreamOpaque *;
using CudaEvent = struct CudaEventOpaque *;
using CudaModule = struct CudaModuleOpaque *;
using CudaFunction = struct CudaFunctionOpaque *;
using CudaGraph = struct CudaGraphOpaque *;
using CudaGraphExec = struct CudaGraphExecOpaque *;
using CudaPointer = unsigned long long;

enum CudaResult : int {
  cudaOk = 0,
  cudaInvalidValue = 1,
  cudaOutOfMemory = 2,
  cudaNoBinary = 209,
  cudaInvalidPtx = 218,
  cudaNotReady = 600,
  cudaPeerEnabled = 704,
  cudaCaptureUnsupported = 900 ///< lowest error code of stream captures
};
constexpr int cudaPageableMemoryAccess = 88; // CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS
constexpr int cudaPointerMemoryType = 2;     // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr uint32_t cudaMemoryOnDevice = 2;   // CU_MEMORYTYPE_DEVICE
constexpr unsigned cudaPortableMapped = 3;   // CU_MEMHOSTREGISTER_PORTABLE | _DEVICEMAP
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventTimed = 0, cudaEventNoTiming = 2;

constexpr int cudaCapabilityMajor = 75,
              cudaCapabilityMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
constexpr int cudaMostDynamicShared = 8; // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr int cudaTensorF16 = 6, cudaTensorBf16 = 9; // CU_TENSOR_MAP_DATA_TYPE_FLOAT16, _BFLOAT16
constexpr int cudaTensorTF32 = 11;                   // CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
constexpr int cudaSwizzle128 = 3,
              cudaPromote256 = 3;     // CU_TENSOR_MAP_SWIZZLE_128B, _L2_PROMOTION_L2_256B
constexpr int cudaCaptureRelaxed = 2; // CU_STREAM_CAPTURE_MODE_RELAXED
constexpr int cudaJitErrorLog = 5, cudaJitErrorLogBytes = 6; // CU_JIT_ERROR_LOG_BUFFER, _SIZE_BYTES

/// Each entry contains the name of a function in the driver, the name of the corresponding member
/// of CudaDriver, and the type of the function. These functions are needed for every use of a GPU:
#define FSDPRT_CUDA_FUNCTIONS(FUNCTION)                                                            \
  FUNCTION(cuInit, init, CudaResult (*)(unsigned))                                                 \
  FUNCTION(cuDriverGetVersion, driverGetVersion, CudaResult (*)(int *))                            \
  FUNCTION(cuGetErrorString, getErrorString, CudaResult (*)(CudaResult, const char **))            \
  FUNCTION(cuDeviceGetCount, deviceGetCount, CudaResult (*)(int *))                                \
  FUNCTION(cuDeviceGet, deviceGet, CudaResult (*)(int *, int))                                     \
  FUNCTION(cuDeviceGetAttribute, deviceGetAttribute, CudaResult (*)(int *, int, int))              \
  FUNCTION(cuDevicePrimaryCtxRetain, primaryContextRetain, CudaResult (*)(CudaContext *, int))     \
  FUNCTION(cuDevicePrimaryCtxRelease_v2, primaryContextRelease, CudaResult (*)(int))               \
  FUNCTION(cuCtxSetCurrent, contextSetCurrent, CudaResult (*)(CudaContext))                        \
  FUNCTION(cuStreamCreate, streamCreate, CudaResult (*)(CudaStream *, unsigned))                   \
  FUNCTION(cuStreamDestroy_v2, streamDestroy, CudaResult (*)(CudaStream))                          \
  FUNCTION(cuEventCreate, eventCreate, CudaResult (*)(CudaEvent *, unsigned))                      \
  FUNCTION(cuEventRecord, eventRecord, CudaResult (*)(CudaEvent, CudaStream))                      \
  FUNCTION(cuEventQuery, eventQuery, CudaResult (*)(CudaEvent))                                    \
  FUNCTION(cuEventDestroy_v2, eventDestroy, CudaResult (*)(CudaEvent))                             \
  FUNCTION(cuMemAlloc_v2, memAlloc, CudaResult (*)(CudaPointer *, size_t))                         \
  FUNCTION(cuMemFree_v2, memFree, CudaResult (*)(CudaPointer))                                     \
  FUNCTION(cuMemsetD8Async, memsetAsync,                                                           \
           CudaResult (*)(CudaPointer, unsigned char, size_t, CudaStream))

/// For collectives over NCCL, these functions are also needed:
#define FSDPRT_CUDA_TRANSFER_FUNCTIONS(FUNCTION)                                                   \
  FUNCTION(cuDeviceGetUuid_v2, deviceGetUuid, CudaResult (*)(void *, int))                         \
  FUNCTION(cuPointerGetAttribute, pointerGetAttribute, CudaResult (*)(void *, int, CudaPointer))   \
  FUNCTION(cuMemHostRegister_v2, memHostRegister, CudaResult (*)(void *, size_t, unsigned))        \
  FUNCTION(cuMemHostUnregister, memHostUnregister, CudaResult (*)(void *))                         \
  FUNCTION(cuMemHostGetDevicePointer_v2, memHostGetDevicePointer,                                  \
           CudaResult (*)(CudaPointer *, void *, unsigned))

/// For kernels, these functions are also needed:
#define FSDPRT_CUDA_KERNEL_FUNCTIONS(FUNCTION)                                                     \
  FUNCTION(cuDeviceGetName, deviceGetName, CudaResult (*)(char *, int, int))                       \
  FUNCTION(cuMemGetInfo_v2, memGetInfo, CudaResult (*)(size_t *, size_t *))                        \
  FUNCTION(cuDeviceTotalMem_v2, deviceTotalMem, CudaResult (*)(size_t *, int))                     \
  FUNCTION(cuDeviceCanAccessPeer, deviceCanAccessPeer, CudaResult (*)(int *, int, int))            \
  FUNCTION(cuCtxEnablePeerAccess, enablePeerAccess, CudaResult (*)(CudaContext, unsigned))         \
  FUNCTION(cuMemHostAlloc, memHostAlloc, CudaResult (*)(void **, size_t, unsigned))                \
  FUNCTION(cuMemFreeHost, memFreeHost, CudaResult (*)(void *))                                     \
  FUNCTION(cuMemcpyAsync, memcpyAsync,                                                             \
           CudaResult (*)(CudaPointer, CudaPointer, size_t, CudaStream))                           \
  FUNCTION(cuStreamCreateWithPriority, streamCreateWithPriority,                                   \
           CudaResult (*)(CudaStream *, unsigned, int))                                            \
  FUNCTION(cuStreamQuery, streamQuery, CudaResult (*)(CudaStream))                                 \
  FUNCTION(cuStreamWaitEvent, streamWaitEvent, CudaResult (*)(CudaStream, CudaEvent, unsigned))    \
  FUNCTION(cuEventElapsedTime, eventElapsedTime, CudaResult (*)(float *, CudaEvent, CudaEvent))    \
  FUNCTION(cuStreamBeginCapture_v2, streamBeginCapture, CudaResult (*)(CudaStream, int))           \
  FUNCTION(cuStreamEndCapture, streamEndCapture, CudaResult (*)(CudaStream, CudaGraph *))          \
  FUNCTION(cuGraphInstantiateWithFlags, graphInstantiate,                                          \
           CudaResult (*)(CudaGraphExec *, CudaGraph, unsigned long long))                         \
  FUNCTION(cuGraphUpload, graphUpload, CudaResult (*)(CudaGraphExec, CudaStream))                  \
  FUNCTION(cuGraphLaunch, graphLaunch, CudaResult (*)(CudaGraphExec, CudaStream))                  \
  FUNCTION(cuGraphExecDestroy, graphExecDestroy, CudaResult (*)(CudaGraphExec))                    \
  FUNCTION(cuGraphDestroy, graphDestroy, CudaResult (*)(CudaGraph))                                \
  FUNCTION(cuModuleLoadData, moduleLoadData, CudaResult (*)(CudaModule *, const void *))           \
  FUNCTION(cuModuleLoadDataEx, moduleLoadDataEx,                                                   \
           CudaResult (*)(CudaModule *, const void *, unsigned, int *, void **))                   \
  FUNCTION(cuModuleUnload, moduleUnload, CudaResult (*)(CudaModule))                               \
  FUNCTION(cuModuleGetFunction, moduleGetFunction,                                                 \
           CudaResult (*)(CudaFunction *, CudaModule, const char *))                               \
  FUNCTION(cuFuncSetAttribute, functionSetAttribute, CudaResult (*)(CudaFunction, int, int))       \
  FUNCTION(cuLaunchKernel, launchKernel,                                                           \
           CudaResult (*)(CudaFunction, unsigned, unsigned, unsigned, unsigned, unsigned,          \
                          unsigned, unsigned, CudaStream, void **, void **))                       \
  FUNCTION(cuTensorMapEncodeTiled, tensorMapEncode,                                                \
           CudaResult (*)(void *, int, unsigned, void *, const uint64_t *, const uint64_t *,       \
                          const uint32_t *, const uint32_t *, int, int, int, int))

/// This function does not exist in drivers of CUDA versions before 12.4:
#define FSDPRT_CUDA_OPTIONAL_FUNCTIONS(FUNCTION)                                                   \
  FUNCTION(cuFuncLoad, functionLoad, CudaResult (*)(CudaFunction))

#define FSDPRT_MEMBER(NAME, member, ...) std::common_type_t<__VA_ARGS__> member = nullptr;

class CudaFailure : public Error {
public:
  CudaFailure(CudaResult result, std::string message)
      : Error(FSDPRT_FAILED, std::move(message)), result(result) {}
  CudaResult result;
};

class CudaDriver {
public:
  enum class Use { transfers, kernels };
  /// Loads the driver. Throws Error if there is no driver or no device. `user` names the component
  /// that needs the driver, such as "backend 'nccl'". Error messages contain this name.
  CudaDriver(const char *user, Use use);

  FSDPRT_CUDA_FUNCTIONS(FSDPRT_MEMBER)
  FSDPRT_CUDA_TRANSFER_FUNCTIONS(FSDPRT_MEMBER)
  FSDPRT_CUDA_KERNEL_FUNCTIONS(FSDPRT_MEMBER)
  FSDPRT_CUDA_OPTIONAL_FUNCTIONS(FSDPRT_MEMBER)

  int devices() const { return count; }
  /// Lets the driver compile PTX, and returns the module. If the driver cannot compile the PTX,
  /// throws a CudaFailure that contains the log of the driver. `what` is the name of the PTX in
  /// this message.
  CudaModule translate(const char *ptx, const char *what) const;
  /// Returns the kernel `name` of a module. Also loads the code of this kernel on the GPU, so that
  /// its first launch allocates no memory. `what` names the attempted action in messages.
  CudaFunction load(CudaModule module, const char *name, const char *what) const;
  std::string versionText() const;
  /// Throws CudaFailure if `result` reports a failure. `what` describes the action that was
  /// attempted.
  void check(CudaResult result, const char *what) const;
  std::string reason(CudaResult result) const;

private:
  int count = 0;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDADRIVER_H
