//===- CudaSums.h - Sums of ranks' memory on a GPU ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Generates and launches a kernel that sums buffers of several ranks in the order of ranks. It
// computes the same bits as Reduce.h on a CPU. The runtime has no compiler, so it generates the
// kernel as PTX for sm_80, which the driver compiles.
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

  /// Returns the PTX of fsdprt_sum_f32, _f64, _f16 and _bf16.
  static std::string ptx();
  /// Shape of a launch: number of 16-byte vectors, and number of blocks. A thread sums one vector,
  /// or one of the elements that fill no vector.
  struct Shape {
    uint64_t vectors, blocks;
  };
  /// Returns the shape for `elements`; `bits` is the bitwise OR of all addresses.
  static Shape shapeOf(DType type, uint64_t elements, uint64_t bits);

  /// Loads the kernels into the current context.
  explicit CudaSums(const CudaDriver &cuda);
  ~CudaSums();
  CudaSums(const CudaSums &) = delete;
  CudaSums &operator=(const CudaSums &) = delete;

  /// Addresses of the summands, in the order of summation.
  struct Sources {
    std::array<CudaPointer, mostSources> at{};
    uint32_t count = 0;
    void add(CudaPointer source) { at[count++] = source; }
  };
  /// Enqueues on a stream of that context: target = ((+0 + first) + second) + ..., times 1 / count
  /// for an average. A null address adds nothing, but counts in the average.
  void launch(CudaStream stream, DType type, bool isAverage, const Sources &sources,
              uint64_t elements, CudaPointer target) const;

private:
  const CudaDriver &cuda;
  CudaModule module = nullptr;
  CudaFunction functions[4] = {}; // by DType
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDASUMS_H
