//===- CudaSums.h - Sums of ranks' memory on a GPU ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The one kernel that the runtime has of its own: the sum of what some ranks hold, in their order,
// to the bits that Reduce.h computes on a CPU. There is no compiler here, so it is written as PTX
// for sm_80, which the driver translates.
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

  /// The text of all of them: fsdprt_sum_f32, _f64, _f16, _bf16.
  static std::string ptx();
  /// In which a block of `threads` takes an element, or 16 bytes at once.
  struct Shape {
    uint64_t vectors, blocks;
  };
  /// Of `elements` at addresses of which `bits` has all bits.
  static Shape shapeOf(DType type, uint64_t elements, uint64_t bits);

  /// In a context, which is current.
  explicit CudaSums(const CudaDriver &cuda);
  ~CudaSums();
  CudaSums(const CudaSums &) = delete;
  CudaSums &operator=(const CudaSums &) = delete;

  /// Where they are, in their order.
  struct Sources {
    std::array<CudaPointer, mostSources> at{};
    uint32_t count = 0;
    void add(CudaPointer source) { at[count++] = source; }
  };
  /// Puts on a stream of that context: target = ((+0 + first) + second) + ..., times 1 / number for
  /// an average. A source of 0 contributes nothing but counts.
  void launch(CudaStream stream, DType type, bool isAverage, const Sources &sources,
              uint64_t elements, CudaPointer target) const;

private:
  const CudaDriver &cuda;
  CudaModule module = nullptr;
  CudaFunction functions[4] = {}; // by DType
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDASUMS_H
