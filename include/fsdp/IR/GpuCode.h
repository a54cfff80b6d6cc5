//===- GpuCode.h - GPU kernels of an image ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Describes the GPU kernels of an image (KernelImage.h) for the stage Package. The image contains
// the PTX of the kernels. Each phase of a kernel is either one launch of PTX code, or one matrix
// product that a library computes.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_GPUCODE_H
#define FSDP_IR_GPUCODE_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir::fsdp {

/// Type of the elements of a tensor map. TF32 elements are f32 in global memory. A copy rounds them
/// to TF32 (to nearest), so that shared memory has 32-bit words whose low 13 bits are 0.
enum class GpuTensorType { BF16, F16, TF32 };

/// A tensor from or to which a launch copies tiles (TensorMap in runtime/schema/artifact.fbs).
struct GpuTensor {
  int64_t binding = 0, offset = 0;
  GpuTensorType type = GpuTensorType::BF16;
  std::vector<int64_t> sizes, strides, box;
};

/// An operand or the result of a matrix product that a library computes (Matrix in
/// runtime/schema/artifact.fbs).
struct GpuMatrix {
  int64_t binding = 0, offset = 0;
  Type type;
  int64_t leading = 0, batchStride = 0;
  bool isTransposed = false;
};

enum class GpuActivation { None, Gelu, GeluGradient };

/// The matrix product result = activation(lhs · rhs + addend + bias), which a library computes
/// (Product in runtime/schema/artifact.fbs).
struct GpuProduct {
  int64_t m = 1, n = 1, k = 1, batches = 1;
  GpuMatrix lhs, rhs, result;
  std::optional<GpuMatrix> addend, bias, aux;
  GpuActivation activation = GpuActivation::None;
};

/// Clocks for which the units of a multiprocessor are busy.
struct GpuClocks {
  double tensor = 0;  ///< tensor cores
  double issue = 0;   ///< schedulers, each of which issues an instruction of a warp per clock
  double special = 0; ///< units of exponentials and other special functions
  double shared = 0;  ///< shared memory
  double cache = 0;   ///< transfers from and to the L2 cache

  /// Returns the clocks of the busiest unit.
  double longest() const { return std::max({tensor, issue, special, shared, cache}); }
  GpuClocks &operator+=(const GpuClocks &other) {
    tensor += other.tensor;
    issue += other.issue;
    special += other.special;
    shared += other.shared;
    cache += other.cache;
    return *this;
  }
  friend GpuClocks operator*(const GpuClocks &clocks, double times) {
    return {clocks.tensor * times, clocks.issue * times, clocks.special * times,
            clocks.shared * times, clocks.cache * times};
  }
};

/// What a launch takes of a GPU, by the model of the plan (fsdp/Analysis/Gpu/GpuClocks.h); Cost of
/// runtime/schema/artifact.fbs.
struct GpuCost {
  double clocks = 0;  ///< from begin to end, if memory is fast enough
  GpuClocks units;    ///< of a multiprocessor, on average
  double bytes = 0;   ///< read from and written to memory
  double balance = 1; ///< part of the multiprocessors' time that the blocks fill
};

/// Launch configuration of a phase.
struct GpuGrid {
  int64_t blocks = 1, threads = 32, sharedBytes = 0, cluster = 1;
  std::vector<GpuTensor> tensors;
};

/// Contents of a GPU image. The bytes [0, ptxBytes) contain PTX. If the PTX was assembled, the
/// image also contains the cubin.
struct GpuCode {
  std::string chip; ///< name of the chip, such as "sm_90a"; empty if the image is not for a GPU
  int64_t ptxBytes = 0, cubinOffset = 0, cubinBytes = 0;
  /// Launch configurations; the key is the symbol of the phase.
  llvm::StringMap<GpuGrid> grids;
  /// Products by a library; the key is the symbol of the phase.
  llvm::StringMap<GpuProduct> products;
  /// Costs of launches and of products; the key is the symbol of the phase.
  llvm::StringMap<GpuCost> costs;

  bool isPresent() const { return !chip.empty(); }
};

} // namespace mlir::fsdp

#endif // FSDP_IR_GPUCODE_H
