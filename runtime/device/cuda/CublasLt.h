//===- CublasLt.h - Declarations of cuBLASLt --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// cuBLASLt, NVIDIA's library of matrix products, is loaded if an artifact uses it: the library that
// the environment variable FSDPRT_CUBLASLT_LIBRARY names, or else libcublasLt.so.13 or .12. The
// build does not need the headers of cuBLASLt, because this file declares its binary interface.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUBLASLT_H
#define FSDPRT_DEVICE_CUDA_CUBLASLT_H

#include "device/cuda/CudaDriver.h"
#include <string>

namespace fsdprt {

/// Correspond to cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t and
/// cublasLtMatmulPreference_t.
using LtHandle = struct LtHandleOpaque *;
using LtProduct = struct LtProductOpaque *;
using LtMatrix = struct LtMatrixOpaque *;
using LtPreference = struct LtPreferenceOpaque *;

enum LtStatus : int {
  ltOk = 0,
  ltNotInitialised = 1,
  ltInvalidValue = 7,
  ltExecutionFailed = 13,
  ltNotSupported = 15
};
/// Constants of cudaDataType, cublasComputeType_t and cublasOperation_t.
enum LtType : int { ltF32 = 0, ltF16 = 2, ltBF16 = 14 };
constexpr int ltComputeF32 = 68;
constexpr int32_t ltAsIs = 0, ltTransposed = 1;

enum LtProductAttribute : int {
  ltTransposeA = 3,
  ltTransposeB = 4,
  ltEpilogue = 7,
  ltBiasPointer = 8,
  ltAuxPointer = 11,
  ltAuxLeading = 12
};
enum LtMatrixAttribute : int { ltBatchCount = 5, ltBatchStride = 6 };
enum LtPreferenceAttribute : int {
  ltMaxWorkspace = 1,
  ltReductionMask = 3,
  ltMinAlignmentA = 5 ///< 6, 7 and 8 are the attributes of B, C and D
};
/// Constants of cublasLtEpilogue_t: no epilogue, a bias, GELU, and the derivative of GELU. The bit
/// ltAux adds an auxiliary matrix that holds the argument of GELU.
enum LtEpilogue : int { ltPlain = 1, ltBias = 4, ltGelu = 32, ltGeluGradient = 192, ltAux = 128 };
/// Constant of cublasLtReductionScheme_t: the partial sums of split-k, which are in the workspace,
/// are added in f32 in a fixed order.
constexpr uint32_t ltReduceInComputeType = 2;

/// Correspond to cublasLtMatmulAlgo_t and cublasLtMatmulHeuristicResult_t.
struct LtAlgorithm {
  uint64_t data[8];
};
struct LtHeuristic {
  LtAlgorithm algorithm;
  size_t workspaceBytes;
  LtStatus state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(LtHeuristic) == 96, "the layout of cublasLtMatmulHeuristicResult_t");

/// Each entry has the name of a function in cuBLASLt, its name in CublasLt, and its type.
#define FSDPRT_CUBLASLT_FUNCTIONS(FUNCTION)                                                        \
  FUNCTION(cublasLtCreate, create, LtStatus (*)(LtHandle *))                                       \
  FUNCTION(cublasLtDestroy, destroy, LtStatus (*)(LtHandle))                                       \
  FUNCTION(cublasLtGetVersion, getVersion, size_t (*)())                                           \
  FUNCTION(cublasLtGetStatusString, getStatusString, const char *(*)(LtStatus))                    \
  FUNCTION(cublasLtMatmulDescCreate, productCreate, LtStatus (*)(LtProduct *, int, LtType))        \
  FUNCTION(cublasLtMatmulDescDestroy, productDestroy, LtStatus (*)(LtProduct))                     \
  FUNCTION(cublasLtMatmulDescSetAttribute, productSet,                                             \
           LtStatus (*)(LtProduct, LtProductAttribute, const void *, size_t))                      \
  FUNCTION(cublasLtMatrixLayoutCreate, matrixCreate,                                               \
           LtStatus (*)(LtMatrix *, LtType, uint64_t, uint64_t, int64_t))                          \
  FUNCTION(cublasLtMatrixLayoutDestroy, matrixDestroy, LtStatus (*)(LtMatrix))                     \
  FUNCTION(cublasLtMatrixLayoutSetAttribute, matrixSet,                                            \
           LtStatus (*)(LtMatrix, LtMatrixAttribute, const void *, size_t))                        \
  FUNCTION(cublasLtMatmulPreferenceCreate, preferenceCreate, LtStatus (*)(LtPreference *))         \
  FUNCTION(cublasLtMatmulPreferenceDestroy, preferenceDestroy, LtStatus (*)(LtPreference))         \
  FUNCTION(cublasLtMatmulPreferenceSetAttribute, preferenceSet,                                    \
           LtStatus (*)(LtPreference, LtPreferenceAttribute, const void *, size_t))                \
  FUNCTION(cublasLtMatmulAlgoGetHeuristic, getHeuristic,                                           \
           LtStatus (*)(LtHandle, LtProduct, LtMatrix, LtMatrix, LtMatrix, LtMatrix, LtPreference, \
                        int, LtHeuristic *, int *))                                                \
  FUNCTION(cublasLtMatmul, multiply,                                                               \
           LtStatus (*)(LtHandle, LtProduct, const void *, const void *, LtMatrix, const void *,   \
                        LtMatrix, const void *, const void *, LtMatrix, void *, LtMatrix,          \
                        const LtAlgorithm *, void *, size_t, CudaStream))

/// The functions of cuBLASLt. The library is never unloaded.
class CublasLt {
public:
  static constexpr size_t oldest = 120000;

  /// Throws Error if the library is missing or too old; the message names `user`.
  explicit CublasLt(const char *user);

  FSDPRT_CUBLASLT_FUNCTIONS(FSDPRT_MEMBER)

  const std::string &getPath() const { return path; }
  /// Throws Error if `status` is a failure; `what` names the attempted action.
  void check(LtStatus status, const std::string &what) const;
  /// Returns text such as "cuBLASLt reports error 15, 'not supported'".
  std::string reason(LtStatus status) const;

private:
  std::string path;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUBLASLT_H
