//===- CudaSums.h - Sums of ranks' memory on a GPU ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Generates and launches a kernel that adds up the buffers of several ranks, in the order of the
// ranks. The result has the same bits as the result of Reduce.h on a CPU. The runtime contains no
// compiler, and therefore generates PTX for sm_80, which the driver compiles.
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
  /// The size of a launch: how many 16-byte vectors it computes, and how many blocks it has. A
  /// thread computes one vector. If the last elements do not fill a vector, each of these elements
  /// is computed by a thread of its own.
  struct Shape {
    uint64_t vectors, blocks;
  };
  /// Returns the shape of a launch that computes `elements` elements. `bits` is the bitwise OR of
  /// the addresses of all sources and of the target.
  static Shape shapeOf(DType type, uint64_t elements, uint64_t bits);

  explicit CudaSums(const CudaDriver &cuda);
  ~CudaSums();
  CudaSums(const CudaSums &) = delete;
  CudaSums &operator=(const CudaSums &) = delete;

  /// The addresses of the buffers, in the order in which they are added.
  struct Sources {
    std::array<CudaPointer, mostSources> at{};
    uint32_t count = 0;
    void add(CudaPointer source) { at[count++] = source; }
  };
  /// Computes target = ((+0 + first) + second) + ..., and for an average multiplies the sums by 1 /
  /// count. Enqueues this computation on `stream`, which must belong to the context that was
  /// current when the constructor ran. If the address of a source is null, this source adds nothing
  /// to the sums, but still counts as a source in an average.
  void launch(CudaStream stream, DType type, bool isAverage, const Sources &sources,
              uint64_t elements, CudaPointer target) const;

private:
  const CudaDriver &cuda;
  CudaModule module = nullptr;
  CudaFunction functions[4] = {}; ///< kernels by DType
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDASUMS_H
