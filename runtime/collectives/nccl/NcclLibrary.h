//===- NcclLibrary.h - Declarations of NCCL ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// NCCL 2.18 or later is loaded when it is needed. If the environment variable FSDPRT_NCCL_LIBRARY
// is set, it names the library. Otherwise the library is libnccl.so.2. This file declares the
// binary interface of NCCL, so that the build does not need the headers of NCCL.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_NCCL_NCCLLIBRARY_H
#define FSDPRT_COLLECTIVES_NCCL_NCCLLIBRARY_H

#include "device/cuda/CudaDriver.h"
#include <climits>
#include <string>

namespace fsdprt {

using NcclComm = struct NcclCommOpaque *;
using NcclWindow = struct NcclWindowOpaque *;

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
enum NcclType : int {
  ncclU8 = 1,
  ncclI32 = 2,
  ncclI64 = 4,
  ncclF16 = 6,
  ncclF32 = 7,
  ncclF64 = 8,
  ncclBF16 = 9
};
enum NcclOperation : int { ncclSum = 0, ncclAvg = 4 };

/// Corresponds to ncclUniqueId. The ranks of an NCCL communicator find each other by this id when
/// they connect.
struct NcclId {
  char bytes[128];
};

constexpr int ncclWindowSymmetric = 1; // NCCL_WIN_COLL_SYMMETRIC
/// Values of NcclConfig::ctaPolicy: few multiprocessors, or none where copy engines suffice.
constexpr int ncclPolicyEfficiency = 1, ncclPolicyZero = 2; // NCCL_CTA_POLICY_*

/// Corresponds to ncclConfig_t of NCCL 2.18, or of NCCL 2.27 after setPolicy(). Newer versions of
/// NCCL read the member `version`, and use defaults for the members that were added after this
/// version. Older versions read no further than to the end of their own struct.
struct NcclConfig {
  static constexpr int unset = INT_MIN;
  static constexpr size_t bytesOf218 = 48;
  size_t size = bytesOf218;
  uint32_t magic = 0xcafebeef;
  uint32_t version = 21800;
  int blocking = 0;
  int cgaClusterSize = unset, minCTAs = unset, maxCTAs = unset;
  const char *netName = nullptr;
  int splitShare = unset;
  int trafficClass = unset; ///< of 2.25; NCCL 2.18 has padding here
  // The members of 2.27:
  const char *commName = nullptr;
  int collnetEnable = unset, ctaPolicy = unset, shrinkShare = unset, nvlsCTAs = unset;

  void setPolicy(int policy) {
    ctaPolicy = policy;
    size = sizeof(NcclConfig);
    version = 22700;
  }
};
static_assert(sizeof(NcclConfig) == 72, "the layout of 2.27");

/// Each entry has the name of a function in NCCL, its name in NcclLibrary, and its type. Functions
/// in OPTIONAL entries do not exist in older versions of NCCL.
#define FSDPRT_NCCL_FUNCTIONS(FUNCTION, OPTIONAL)                                                  \
  FUNCTION(ncclGetVersion, getVersion, NcclResult (*)(int *))                                      \
  FUNCTION(ncclGetErrorString, getErrorString, const char *(*)(NcclResult))                        \
  FUNCTION(ncclGetLastError, getLastError, const char *(*)(NcclComm))                              \
  FUNCTION(ncclGetUniqueId, getUniqueId, NcclResult (*)(NcclId *))                                 \
  FUNCTION(ncclCommInitRankConfig, commInitRankConfig,                                             \
           NcclResult (*)(NcclComm *, int, NcclId, int, NcclConfig *))                             \
  FUNCTION(ncclCommSplit, commSplit, NcclResult (*)(NcclComm, int, int, NcclComm *, NcclConfig *)) \
  FUNCTION(ncclCommFinalize, commFinalize, NcclResult (*)(NcclComm))                               \
  FUNCTION(ncclCommDestroy, commDestroy, NcclResult (*)(NcclComm))                                 \
  FUNCTION(ncclCommAbort, commAbort, NcclResult (*)(NcclComm))                                     \
  FUNCTION(ncclCommGetAsyncError, commGetAsyncError, NcclResult (*)(NcclComm, NcclResult *))       \
  FUNCTION(ncclGroupStart, groupStart, NcclResult (*)())                                           \
  FUNCTION(ncclGroupEnd, groupEnd, NcclResult (*)())                                               \
  FUNCTION(ncclAllGather, allGather,                                                               \
           NcclResult (*)(const void *, void *, size_t, NcclType, NcclComm, CudaStream))           \
  FUNCTION(                                                                                        \
      ncclReduceScatter, reduceScatter,                                                            \
      NcclResult (*)(const void *, void *, size_t, NcclType, NcclOperation, NcclComm, CudaStream)) \
  FUNCTION(                                                                                        \
      ncclAllReduce, allReduce,                                                                    \
      NcclResult (*)(const void *, void *, size_t, NcclType, NcclOperation, NcclComm, CudaStream)) \
  FUNCTION(ncclBroadcast, broadcast,                                                               \
           NcclResult (*)(const void *, void *, size_t, NcclType, int, NcclComm, CudaStream))      \
  FUNCTION(ncclSend, send,                                                                         \
           NcclResult (*)(const void *, size_t, NcclType, int, NcclComm, CudaStream))              \
  FUNCTION(ncclRecv, receive, NcclResult (*)(void *, size_t, NcclType, int, NcclComm, CudaStream)) \
  OPTIONAL(ncclCommRegister, commRegister, NcclResult (*)(NcclComm, void *, size_t, void **))      \
  OPTIONAL(ncclCommDeregister, commDeregister, NcclResult (*)(NcclComm, void *))                   \
  OPTIONAL(ncclMemAlloc, memAlloc, NcclResult (*)(void **, size_t))                                \
  OPTIONAL(ncclMemFree, memFree, NcclResult (*)(void *))

/// These functions exist in NCCL 2.27 and later.
#define FSDPRT_NCCL_WINDOW_FUNCTIONS(FUNCTION)                                                     \
  FUNCTION(ncclCommWindowRegister, windowRegister,                                                 \
           NcclResult (*)(NcclComm, void *, size_t, NcclWindow *, int))                            \
  FUNCTION(ncclCommWindowDeregister, windowDeregister, NcclResult (*)(NcclComm, NcclWindow))

/// Contains the functions of NCCL. The library is never unloaded.
class NcclLibrary {
public:
  /// First versions that have ncclCommSplit, windows and CTA policies, and the policy zero.
  static constexpr int oldest = 21801, withWindows = 22700, withPolicyZero = 22800;

  /// Loads the library. Throws Error if the library is missing or too old.
  NcclLibrary();

  FSDPRT_NCCL_FUNCTIONS(FSDPRT_MEMBER, FSDPRT_MEMBER)
  FSDPRT_NCCL_WINDOW_FUNCTIONS(FSDPRT_MEMBER)

  int version() const { return code; }
  /// Returns a text such as "NCCL 2.30.7 (libnccl.so.2)".
  std::string text() const;
  /// Returns a text that describes why a call has failed. `comm` may be null.
  std::string reason(NcclResult result, NcclComm comm) const;
  static std::string versionText(int code);

private:
  std::string path;
  int code = 0;
};

/// A group of NCCL calls, which the constructor begins. If end() has not been called, the
/// destructor ends the group.
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

#endif // FSDPRT_COLLECTIVES_NCCL_NCCLLIBRARY_H
