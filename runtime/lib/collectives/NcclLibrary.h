//===- NcclLibrary.h - What is used of NCCL and CUDA ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Both libraries are found when ranks are to meet over NCCL, and nothing of them is needed to build: what
// follows are declarations of our own of their binary interfaces.
//
//     libnccl.so.2  or FSDPRT_NCCL_LIBRARY     2.18 or later
//     libcuda.so.1  or FSDPRT_CUDA_LIBRARY     the driver's own interface: streams, events, memory
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_NCCLLIBRARY_H
#define FSDPRT_COLLECTIVES_NCCLLIBRARY_H

#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace fsdprt {

/// ncclComm_t, and CUcontext, CUstream, CUevent, CUdeviceptr.
using NcclComm = struct NcclCommOpaque *;
using CudaContext = struct CudaContextOpaque *;
using CudaStream = struct CudaStreamOpaque *;
using CudaEvent = struct CudaEventOpaque *;
using CudaPointer = unsigned long long;

enum NcclResult : int {
  ncclOk = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
};
enum NcclType : int { ncclU8 = 1, ncclI32 = 2, ncclI64 = 4, ncclF16 = 6, ncclF32 = 7, ncclF64 = 8, ncclBF16 = 9 };
enum NcclOperation : int { ncclSum = 0, ncclAvg = 4 };

/// ncclUniqueId: what the ranks of a communicator have in common before they meet.
struct NcclId {
  char bytes[128];
};

/// ncclConfig_t as it was in 2.18. The library takes defaults for what came later, since `version` says how old it is.
struct NcclConfig {
  static constexpr int unset = INT_MIN;
  size_t size = sizeof(NcclConfig);
  uint32_t magic = 0xcafebeef;
  uint32_t version = 21800;
  int blocking = 0;
  int cgaClusterSize = unset, minCTAs = unset, maxCTAs = unset;
  const char *netName = nullptr;
  int splitShare = unset;
  int padding = unset; // newer layouts have a member here
};
static_assert(sizeof(NcclConfig) == 48, "the layout of 2.18");

/// A name of a library's function, what we call it, its type; `OPTIONAL` for those that older versions lack.
#define FSDPRT_NCCL_FUNCTIONS(FUNCTION, OPTIONAL)                                                                      \
  FUNCTION(ncclGetVersion, getVersion, NcclResult (*)(int *))                                                          \
  FUNCTION(ncclGetErrorString, getErrorString, const char *(*)(NcclResult))                                            \
  FUNCTION(ncclGetLastError, getLastError, const char *(*)(NcclComm))                                                  \
  FUNCTION(ncclGetUniqueId, getUniqueId, NcclResult (*)(NcclId *))                                                     \
  FUNCTION(ncclCommInitRankConfig, commInitRankConfig, NcclResult (*)(NcclComm *, int, NcclId, int, NcclConfig *))     \
  FUNCTION(ncclCommSplit, commSplit, NcclResult (*)(NcclComm, int, int, NcclComm *, NcclConfig *))                     \
  FUNCTION(ncclCommFinalize, commFinalize, NcclResult (*)(NcclComm))                                                   \
  FUNCTION(ncclCommDestroy, commDestroy, NcclResult (*)(NcclComm))                                                     \
  FUNCTION(ncclCommAbort, commAbort, NcclResult (*)(NcclComm))                                                         \
  FUNCTION(ncclCommGetAsyncError, commGetAsyncError, NcclResult (*)(NcclComm, NcclResult *))                           \
  FUNCTION(ncclGroupStart, groupStart, NcclResult (*)())                                                               \
  FUNCTION(ncclGroupEnd, groupEnd, NcclResult (*)())                                                                   \
  FUNCTION(ncclAllGather, allGather,                                                                                   \
           NcclResult (*)(const void *, void *, size_t, NcclType, NcclComm, CudaStream))                               \
  FUNCTION(ncclReduceScatter, reduceScatter,                                                                           \
           NcclResult (*)(const void *, void *, size_t, NcclType, NcclOperation, NcclComm, CudaStream))                \
  FUNCTION(ncclAllReduce, allReduce,                                                                                   \
           NcclResult (*)(const void *, void *, size_t, NcclType, NcclOperation, NcclComm, CudaStream))                \
  FUNCTION(ncclBroadcast, broadcast,                                                                                   \
           NcclResult (*)(const void *, void *, size_t, NcclType, int, NcclComm, CudaStream))                          \
  OPTIONAL(ncclCommRegister, commRegister, NcclResult (*)(NcclComm, void *, size_t, void **))                          \
  OPTIONAL(ncclCommDeregister, commDeregister, NcclResult (*)(NcclComm, void *))

enum CudaResult : int { cudaOk = 0, cudaInvalidValue = 1, cudaOutOfMemory = 2, cudaNotReady = 600 };
constexpr int cudaPageableMemoryAccess = 88; // CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS
constexpr int cudaPointerMemoryType = 2;     // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr uint32_t cudaMemoryOnDevice = 2;   // CU_MEMORYTYPE_DEVICE
constexpr unsigned cudaPortableMapped = 3;   // CU_MEMHOSTREGISTER_PORTABLE | _DEVICEMAP
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventNoTiming = 2;

#define FSDPRT_CUDA_FUNCTIONS(FUNCTION)                                                                                \
  FUNCTION(cuInit, init, CudaResult (*)(unsigned))                                                                     \
  FUNCTION(cuDriverGetVersion, driverGetVersion, CudaResult (*)(int *))                                                \
  FUNCTION(cuGetErrorString, getErrorString, CudaResult (*)(CudaResult, const char **))                                \
  FUNCTION(cuDeviceGetCount, deviceGetCount, CudaResult (*)(int *))                                                    \
  FUNCTION(cuDeviceGet, deviceGet, CudaResult (*)(int *, int))                                                         \
  FUNCTION(cuDeviceGetUuid_v2, deviceGetUuid, CudaResult (*)(void *, int))                                             \
  FUNCTION(cuDeviceGetAttribute, deviceGetAttribute, CudaResult (*)(int *, int, int))                                  \
  FUNCTION(cuDevicePrimaryCtxRetain, primaryContextRetain, CudaResult (*)(CudaContext *, int))                         \
  FUNCTION(cuDevicePrimaryCtxRelease_v2, primaryContextRelease, CudaResult (*)(int))                                   \
  FUNCTION(cuCtxSetCurrent, contextSetCurrent, CudaResult (*)(CudaContext))                                            \
  FUNCTION(cuStreamCreate, streamCreate, CudaResult (*)(CudaStream *, unsigned))                                       \
  FUNCTION(cuStreamDestroy_v2, streamDestroy, CudaResult (*)(CudaStream))                                              \
  FUNCTION(cuEventCreate, eventCreate, CudaResult (*)(CudaEvent *, unsigned))                                          \
  FUNCTION(cuEventRecord, eventRecord, CudaResult (*)(CudaEvent, CudaStream))                                          \
  FUNCTION(cuEventQuery, eventQuery, CudaResult (*)(CudaEvent))                                                        \
  FUNCTION(cuEventDestroy_v2, eventDestroy, CudaResult (*)(CudaEvent))                                                 \
  FUNCTION(cuMemAlloc_v2, memAlloc, CudaResult (*)(CudaPointer *, size_t))                                             \
  FUNCTION(cuMemFree_v2, memFree, CudaResult (*)(CudaPointer))                                                         \
  FUNCTION(cuMemsetD8Async, memsetAsync, CudaResult (*)(CudaPointer, unsigned char, size_t, CudaStream))               \
  FUNCTION(cuPointerGetAttribute, pointerGetAttribute, CudaResult (*)(void *, int, CudaPointer))                       \
  FUNCTION(cuMemHostRegister_v2, memHostRegister, CudaResult (*)(void *, size_t, unsigned))                            \
  FUNCTION(cuMemHostUnregister, memHostUnregister, CudaResult (*)(void *))                                             \
  FUNCTION(cuMemHostGetDevicePointer_v2, memHostGetDevicePointer, CudaResult (*)(CudaPointer *, void *, unsigned))

/// Functions of a library that stays loaded.
class NcclLibrary {
public:
  static constexpr int oldest = 21801; // the first with ncclCommSplit

  /// Throws Error when there is none, or one that is too old.
  NcclLibrary();

#define FSDPRT_MEMBER(NAME, member, ...) std::common_type_t<__VA_ARGS__> member = nullptr;
  FSDPRT_NCCL_FUNCTIONS(FSDPRT_MEMBER, FSDPRT_MEMBER)

  int version() const { return code; }
  /// "NCCL 2.30.7 (libnccl.so.2)".
  std::string text() const;
  /// What a call on a communicator (may be null) has failed with.
  std::string reason(NcclResult result, NcclComm comm) const;
  static std::string versionText(int code);

private:
  std::string path;
  int code = 0;
};

class CudaDriver {
public:
  /// Throws Error when there is none, or no device.
  CudaDriver();

  FSDPRT_CUDA_FUNCTIONS(FSDPRT_MEMBER)
#undef FSDPRT_MEMBER

  int devices() const { return count; }
  std::string versionText() const;
  /// Throws Error, unless a call has succeeded; `what` is what it was to do.
  void check(CudaResult result, const char *what) const;
  std::string reason(CudaResult result) const;

private:
  int count = 0;
};

/// Calls that NCCL takes together. What begins is ended, also by an exception.
class NcclGroup {
public:
  explicit NcclGroup(const NcclLibrary &nccl) : nccl(nccl) { nccl.groupStart(); }
  ~NcclGroup() { end(); }
  NcclResult end() {
    NcclResult result = isOpen ? nccl.groupEnd() : ncclOk;
    isOpen = false;
    return result;
  }

private:
  const NcclLibrary &nccl;
  bool isOpen = true;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_NCCLLIBRARY_H
