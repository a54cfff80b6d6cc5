//===- NvidiaHeadersTest.cpp - Declarations against NVIDIA's ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The runtime has its own declarations of the CUDA driver, NCCL and cuBLASLt. The stubs of the
// tests use the same declarations, so that other tests cannot find an error in these declarations.
// If NVIDIA's headers are installed, this test compares every function, number and structure layout
// of these declarations with the headers. Two declarations of a function are considered equal if
// each argument, and the result, has the same size and the same kind in both declarations. The
// kinds are pointers, numbers (integers and enumerations), and structures.
//
//===----------------------------------------------------------------------===//

#include "collectives/nccl/NcclLibrary.h"
#include "device/cuda/CublasLt.h"
#include "device/cuda/CudaDriver.h"
#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>
#endif
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif
// driver_types.h defines a macro with this name.
#undef cudaStreamNonBlocking

namespace {
template <typename T>
constexpr bool isNumber = std::is_integral_v<T> || std::is_enum_v<T>;

template <typename A, typename B>
constexpr bool isPassedAlike() {
  if constexpr (std::is_void_v<A> || std::is_void_v<B>)
    return std::is_void_v<A> && std::is_void_v<B>;
  else if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>)
    return std::is_pointer_v<A> && std::is_pointer_v<B>;
  else if constexpr (isNumber<A> || isNumber<B>)
    return isNumber<A> && isNumber<B> && sizeof(A) == sizeof(B);
  else
    return std::is_class_v<A> && std::is_class_v<B> && sizeof(A) == sizeof(B) &&
           alignof(A) == alignof(B);
}

template <typename Ours, typename Theirs>
struct AreCalledAlike;
template <typename R, typename... A, typename S, typename... B>
struct AreCalledAlike<R (*)(A...), S (*)(B...)> {
  static constexpr bool check() {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return isPassedAlike<R, S>() && (isPassedAlike<A, B>() && ...);
  }
};

[[maybe_unused]] constexpr bool isANumberAPointer = isPassedAlike<unsigned long long, void *>();
static_assert(!isANumberAPointer, "a number and a pointer are told from each other");
static_assert(!AreCalledAlike<int (*)(int), int (*)(int64_t)>::check(), "so are sizes");
static_assert(!AreCalledAlike<int (*)(int), int (*)(int, int)>::check(),
              "and numbers of arguments");
} // namespace

#define EXPECT_SAME_FUNCTION(NAME, member, ...)                                                    \
  EXPECT_TRUE((AreCalledAlike<std::common_type_t<__VA_ARGS__>, decltype(&::NAME)>::check()))       \
      << #NAME " is declared otherwise by NVIDIA";
#define EXPECT_SAME_NUMBER(ours, theirs)                                                           \
  EXPECT_EQ(static_cast<long long>(fsdprt::ours), static_cast<long long>(theirs)) << #ours

namespace fsdprt {
TEST(NvidiaHeaders, Driver) {
#ifdef CUDA_VERSION
  FSDPRT_CUDA_FUNCTIONS(EXPECT_SAME_FUNCTION)
  FSDPRT_CUDA_TRANSFER_FUNCTIONS(EXPECT_SAME_FUNCTION)
  FSDPRT_CUDA_KERNEL_FUNCTIONS(EXPECT_SAME_FUNCTION)
#if CUDA_VERSION >= 12040
  FSDPRT_CUDA_OPTIONAL_FUNCTIONS(EXPECT_SAME_FUNCTION)
#endif
  EXPECT_SAME_NUMBER(cudaOk, CUDA_SUCCESS);
  EXPECT_SAME_NUMBER(cudaInvalidValue, CUDA_ERROR_INVALID_VALUE);
  EXPECT_SAME_NUMBER(cudaOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_SAME_NUMBER(cudaNoBinary, CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_SAME_NUMBER(cudaInvalidPtx, CUDA_ERROR_INVALID_PTX);
  EXPECT_SAME_NUMBER(cudaCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_SAME_NUMBER(cudaJitErrorLog, CU_JIT_ERROR_LOG_BUFFER);
  EXPECT_SAME_NUMBER(cudaJitErrorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  EXPECT_SAME_NUMBER(cudaNotReady, CUDA_ERROR_NOT_READY);
  EXPECT_SAME_NUMBER(cudaPeerEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_SAME_NUMBER(cudaPageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
  EXPECT_SAME_NUMBER(cudaPointerMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
  EXPECT_SAME_NUMBER(cudaMemoryOnDevice, CU_MEMORYTYPE_DEVICE);
  EXPECT_SAME_NUMBER(cudaPortableMapped,
                     CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  EXPECT_SAME_NUMBER(cudaPortableMapped, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  EXPECT_SAME_NUMBER(cudaStreamNonBlocking, CU_STREAM_NON_BLOCKING);
  EXPECT_SAME_NUMBER(cudaEventNoTiming, CU_EVENT_DISABLE_TIMING);
  EXPECT_SAME_NUMBER(cudaEventTimed, CU_EVENT_DEFAULT);
  EXPECT_SAME_NUMBER(cudaCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_SAME_NUMBER(cudaCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_SAME_NUMBER(cudaMostDynamicShared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_SAME_NUMBER(cudaCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_SAME_NUMBER(cudaTensorF16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  EXPECT_SAME_NUMBER(cudaTensorBf16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  EXPECT_SAME_NUMBER(cudaTensorTF32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
  EXPECT_SAME_NUMBER(cudaSwizzle128, CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_SAME_NUMBER(cudaPromote256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
#else
  GTEST_SKIP() << "cuda.h is not installed";
#endif
}

TEST(NvidiaHeaders, Nccl) {
#ifdef NCCL_VERSION_CODE
  FSDPRT_NCCL_FUNCTIONS(EXPECT_SAME_FUNCTION, EXPECT_SAME_FUNCTION)
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  FSDPRT_NCCL_WINDOW_FUNCTIONS(EXPECT_SAME_FUNCTION)
  EXPECT_SAME_NUMBER(ncclWindowSymmetric, NCCL_WIN_COLL_SYMMETRIC);
  EXPECT_SAME_NUMBER(ncclPolicyEfficiency, NCCL_CTA_POLICY_EFFICIENCY);
  for (auto [own, other] :
       {std::pair(offsetof(NcclConfig, trafficClass), offsetof(ncclConfig_t, trafficClass)),
        std::pair(offsetof(NcclConfig, commName), offsetof(ncclConfig_t, commName)),
        std::pair(offsetof(NcclConfig, collnetEnable), offsetof(ncclConfig_t, collnetEnable)),
        std::pair(offsetof(NcclConfig, ctaPolicy), offsetof(ncclConfig_t, CTAPolicy)),
        std::pair(offsetof(NcclConfig, shrinkShare), offsetof(ncclConfig_t, shrinkShare)),
        std::pair(offsetof(NcclConfig, nvlsCTAs), offsetof(ncclConfig_t, nvlsCTAs))})
    EXPECT_EQ(own, other);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
  EXPECT_SAME_NUMBER(ncclPolicyZero, NCCL_CTA_POLICY_ZERO);
#endif
  EXPECT_SAME_NUMBER(NcclResult::ncclOk, ::ncclSuccess);
  EXPECT_SAME_NUMBER(NcclResult::ncclUnhandledCudaError, ::ncclUnhandledCudaError);
  EXPECT_SAME_NUMBER(NcclResult::ncclSystemError, ::ncclSystemError);
  EXPECT_SAME_NUMBER(NcclResult::ncclInternalError, ::ncclInternalError);
  EXPECT_SAME_NUMBER(NcclResult::ncclInvalidArgument, ::ncclInvalidArgument);
  EXPECT_SAME_NUMBER(NcclResult::ncclInvalidUsage, ::ncclInvalidUsage);
  EXPECT_SAME_NUMBER(NcclResult::ncclRemoteError, ::ncclRemoteError);
  EXPECT_SAME_NUMBER(NcclResult::ncclInProgress, ::ncclInProgress);
  EXPECT_SAME_NUMBER(ncclU8, ncclUint8);
  EXPECT_SAME_NUMBER(ncclI32, ncclInt32);
  EXPECT_SAME_NUMBER(ncclI64, ncclInt64);
  EXPECT_SAME_NUMBER(ncclF16, ncclFloat16);
  EXPECT_SAME_NUMBER(ncclF32, ncclFloat32);
  EXPECT_SAME_NUMBER(ncclF64, ncclFloat64);
  EXPECT_SAME_NUMBER(ncclBF16, ncclBfloat16);
  EXPECT_SAME_NUMBER(NcclOperation::ncclSum, ::ncclSum);
  EXPECT_SAME_NUMBER(NcclOperation::ncclAvg, ::ncclAvg);
  EXPECT_EQ(sizeof(NcclId), sizeof(ncclUniqueId));
  ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  NcclConfig ours;
  EXPECT_LE(NcclConfig::bytesOf218, sizeof theirs);
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(NcclConfig::unset, theirs.splitShare);
  EXPECT_EQ(offsetof(NcclConfig, magic), offsetof(ncclConfig_t, magic));
  EXPECT_EQ(offsetof(NcclConfig, version), offsetof(ncclConfig_t, version));
  EXPECT_EQ(offsetof(NcclConfig, blocking), offsetof(ncclConfig_t, blocking));
  EXPECT_EQ(offsetof(NcclConfig, cgaClusterSize), offsetof(ncclConfig_t, cgaClusterSize));
  EXPECT_EQ(offsetof(NcclConfig, minCTAs), offsetof(ncclConfig_t, minCTAs));
  EXPECT_EQ(offsetof(NcclConfig, maxCTAs), offsetof(ncclConfig_t, maxCTAs));
  EXPECT_EQ(offsetof(NcclConfig, netName), offsetof(ncclConfig_t, netName));
  EXPECT_EQ(offsetof(NcclConfig, splitShare), offsetof(ncclConfig_t, splitShare));
#else
  GTEST_SKIP() << "nccl.h, or the cuda_runtime.h that it includes, is not installed";
#endif
}

TEST(NvidiaHeaders, CublasLt) {
#ifdef CUBLAS_VERSION
  FSDPRT_CUBLASLT_FUNCTIONS(EXPECT_SAME_FUNCTION)
  EXPECT_SAME_NUMBER(ltOk, CUBLAS_STATUS_SUCCESS);
  EXPECT_SAME_NUMBER(ltNotInitialised, CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_SAME_NUMBER(ltInvalidValue, CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_SAME_NUMBER(ltExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_SAME_NUMBER(ltNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_SAME_NUMBER(ltF32, CUDA_R_32F);
  EXPECT_SAME_NUMBER(ltF16, CUDA_R_16F);
  EXPECT_SAME_NUMBER(ltBF16, CUDA_R_16BF);
  EXPECT_SAME_NUMBER(ltComputeF32, CUBLAS_COMPUTE_32F);
  EXPECT_SAME_NUMBER(ltAsIs, CUBLAS_OP_N);
  EXPECT_SAME_NUMBER(ltTransposed, CUBLAS_OP_T);
  EXPECT_SAME_NUMBER(ltTransposeA, CUBLASLT_MATMUL_DESC_TRANSA);
  EXPECT_SAME_NUMBER(ltTransposeB, CUBLASLT_MATMUL_DESC_TRANSB);
  EXPECT_SAME_NUMBER(ltEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  EXPECT_SAME_NUMBER(ltBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  EXPECT_SAME_NUMBER(ltAuxPointer, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
  EXPECT_SAME_NUMBER(ltAuxLeading, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
  EXPECT_SAME_NUMBER(ltBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  EXPECT_SAME_NUMBER(ltBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  EXPECT_SAME_NUMBER(ltMaxWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  EXPECT_SAME_NUMBER(ltReductionMask, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  EXPECT_SAME_NUMBER(ltMinAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  EXPECT_EQ(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + 3);
  EXPECT_SAME_NUMBER(ltPlain, CUBLASLT_EPILOGUE_DEFAULT);
  EXPECT_SAME_NUMBER(ltBias, CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(ltGelu | ltBias, static_cast<int>(CUBLASLT_EPILOGUE_GELU_BIAS));
  EXPECT_EQ(ltGelu | ltAux, static_cast<int>(CUBLASLT_EPILOGUE_GELU_AUX));
  EXPECT_EQ(ltGelu | ltAux | ltBias, static_cast<int>(CUBLASLT_EPILOGUE_GELU_AUX_BIAS));
  EXPECT_SAME_NUMBER(ltGelu, CUBLASLT_EPILOGUE_GELU);
  EXPECT_SAME_NUMBER(ltGeluGradient, CUBLASLT_EPILOGUE_DGELU);
  EXPECT_SAME_NUMBER(ltReduceInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  EXPECT_EQ(sizeof(LtAlgorithm), sizeof(cublasLtMatmulAlgo_t));
  EXPECT_EQ(sizeof(LtHeuristic), sizeof(cublasLtMatmulHeuristicResult_t));
  EXPECT_EQ(offsetof(LtHeuristic, algorithm), offsetof(cublasLtMatmulHeuristicResult_t, algo));
  EXPECT_EQ(offsetof(LtHeuristic, workspaceBytes),
            offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
  EXPECT_EQ(offsetof(LtHeuristic, state), offsetof(cublasLtMatmulHeuristicResult_t, state));
  EXPECT_EQ(offsetof(LtHeuristic, waves), offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));
#else
  GTEST_SKIP() << "cublasLt.h is not installed";
#endif
}
} // namespace fsdprt
