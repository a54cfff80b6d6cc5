//===- CublasLt.h - Declarations of cuBLASLt --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// cuBLASLt, NVIDIA's library of matrix products, is loaded if an artifact uses it. If the
// environment variable FSDPRT_CUBLASLT_LIBRARY is set, it names the library. Otherwise the library
// is libcublasLt.so.13 or libcublasLt.so.12. This file declares the binary interface of cuBLASLt,
// so that the build does not need its headers.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUBLASLT_H
#define FSDPRT_DEVICE_CUDA_CUBLASLT_H

#include "device/cuda/CudaDriver.h"
#include <string>

namespace fsdprt {

/// These types correspond to cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t and
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
/// These constants are values of cudaDataType, cublasComputeType_t and cublasOperation_t.
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
  /// minimum alignment of A; the values 6, 7 and 8 denote the minimum alignments of B, C and D
  ltMinAlignmentA = 5
};
/// Values of cublasLtEpilogue_t: no epilogue, the addition of a bias, GELU, and the gradient of
/// GELU. If the bit ltAux is set, the epilogue also uses an auxiliary matrix, which contains the
/// argument of GELU.
enum LtEpilogue : int { ltPlain = 1, ltBias = 4, ltGelu = 32, ltGeluGradient = 192, ltAux = 128 };
/// Value of cublasLtReductionScheme_t. Products with split-k store their partial sums in the
/// workspace, and then add these sums in f32 in a fixed order.
constexpr uint32_t ltReduceInComputeType = 2;

/// These types correspond to cublasLtMatmulAlgo_t and cublasLtMatmulHeuristicResult_t.
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

/// Contains the functions of cuBLASLt. The library is never unloaded.
class CublasLt {
public:
  static constexpr size_t oldest = 120000;

  /// Loads the library. Throws Error if the library is missing or too old. The message of the Error
  /// contains `user`, which names the component that needs the library.
  explicit CublasLt(const char *user);

  FSDPRT_CUBLASLT_FUNCTIONS(FSDPRT_MEMBER)

  const std::string &getPath() const { return path; }
  /// Throws Error if `status` reports a failure. `what` describes the action that was attempted.
  void check(LtStatus status, const std::string &what) const;
  /// Returns a text such as "cuBLASLt reports error 15, 'not supported'".
  std::string reason(LtStatus status) const;

private:
  std::string path;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUBLASLT_H
