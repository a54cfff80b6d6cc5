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
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir::fsdp {

/// A tensor from or to which a launch copies tiles (TensorMap in runtime/schema/artifact.fbs).
struct GpuTensor {
  int64_t binding = 0, offset = 0;
  bool isBf16 = true;
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

  bool isPresent() const { return !chip.empty(); }
};

} // namespace mlir::fsdp

#endif // FSDP_IR_GPUCODE_H
