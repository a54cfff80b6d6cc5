//===- CublasLtStubKernels.h - Kernels of the cuBLASLt stub --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_CUBLASLT_CUBLASLTSTUBKERNELS_H
#define FSDPRT_TESTING_CUBLASLT_CUBLASLTSTUBKERNELS_H

#include "device/cuda/CublasLt.h"
#include <array>
#include <string>

namespace fsdprt::test {

/// Distances in elements between consecutive rows, columns, and matrices of a batch.
struct StubStrides {
  uint64_t row, col, batch;
};

/// The product d = activation(a · b + c + bias). All matrices are column-major, as in cuBLASLt.
struct StubProduct {
  enum Flag : uint32_t { adds = 1, hasBias = 2, isGelu = 4, storesArgument = 8, isGradient = 16 };
  std::array<const void *, 6> pointers = {}; // pointers to a, b, c, d, bias and aux
  uint64_t m = 0, n = 0, k = 0, batches = 1;
  StubStrides a = {}, b = {}, c = {}, d = {};
  uint64_t auxLeading = 0;
  uint32_t flags = 0;
};

/// A module of the current context, with one kernel per combination of types.
class StubKernels {
public:
  /// Loads the module at the first call. Returns a description of the failure, or an empty string.
  std::string load();
  /// Launches a product. Returns a description of the failure, or an empty string.
  std::string launch(const StubProduct &product, LtType factors, LtType result, CudaStream stream);

private:
  CudaModule module = nullptr;
  CudaResult (*launchKernel)(CudaFunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, unsigned, CudaStream, void **, void **) = nullptr;
  CudaResult (*getFunction)(CudaFunction *, CudaModule, const char *) = nullptr;
};

} // namespace fsdprt::test

#endif // FSDPRT_TESTING_CUBLASLT_CUBLASLTSTUBKERNELS_H
