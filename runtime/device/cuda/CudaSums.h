//===- CudaSums.h - Sums of ranks' memory on a GPU ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Generates and launches a kernel that sums buffers of several ranks in the order of ranks. The
// kernel computes the same bits as Reduce.h on a CPU. The runtime contains no compiler, and
// therefore generates PTX for sm_80, which the driver compiles.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUDASUMS_H
#define FSDPRT_DEVICE_CUDA_CUDASUMS_H

#include "core/DType.h"
#include "device/cuda/CudaDriver.h"
#include <array>

namespace fsdprt {

class CudaSums {
public:
  static constexpr uint32_t mostSources = 64, threads = 256;

  /// Returns the PTX of the kernels fsdprt_sum_f32, _f64, _f16 and _bf16.
  static std::string ptx();
  /// Numbers of 16-byte vectors and of blocks of a launch. A thread sums one vector, or one of the
  /// last elements, which do not fill a vector.
  struct Shape {
    uint64_t vectors, blocks;
  };
  /// Returns the shape for `elements` elements. `bits` is the bitwise OR of all addresses.
  static Shape shapeOf(DType type, uint64_t elements, uint64_t bits);

  explicit CudaSums(const CudaDriver &cuda);
  ~CudaSums();
  CudaSums(const CudaSums &) = delete;
  CudaSums &operator=(const CudaSums &) = delete;

  /// Addresses of the buffers to sum, in the order of summation.
  struct Sources {
    std::array<CudaPointer, mostSources> at{};
    uint32_t count = 0;
    void add(CudaPointer source) { at[count++] = source; }
  };
  /// Enqueues target = ((+0 + first) + second) + ..., times 1 / count for an average, on a stream
  /// of the context that was current in the constructor. A null address adds nothing, but an
  /// average counts it as a source.
  void launch(CudaStream stream, DType type, bool isAverage, const Sources &sources,
              uint64_t elements, CudaPointer target) const;

private:
  const CudaDriver &cuda;
  CudaModule module = nullptr;
  CudaFunction functions[4] = {}; ///< kernels by DType
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDASUMS_H
