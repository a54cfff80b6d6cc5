//===- GpuCode.h - Kernels for a GPU in an image ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What Package knows, beside the image (KernelImage.h), of kernels that run on a GPU: the
// image holds their text, and the phases of a kernel are launches.
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

/// A tensor that a launch copies tiles of: runtime/schema/artifact.fbs, TensorMap.
struct GpuTensor {
  int64_t binding = 0, offset = 0;
  bool isBf16 = true;
  std::vector<int64_t> sizes, strides, box;
};

/// A matrix of a product that a library computes: runtime/schema/artifact.fbs, Matrix.
struct GpuMatrix {
  int64_t binding = 0, offset = 0;
  Type type;
  int64_t leading = 0, batchStride = 0;
  bool isTransposed = false;
};

enum class GpuActivation { None, Gelu, GeluGradient };

/// result = activation(lhs · rhs + addend + bias), by a library: Product.
struct GpuProduct {
  int64_t m = 1, n = 1, k = 1, batches = 1;
  GpuMatrix lhs, rhs, result;
  std::optional<GpuMatrix> addend, bias, aux;
  GpuActivation activation = GpuActivation::None;
};

/// How a phase is launched.
struct GpuGrid {
  int64_t blocks = 1, threads = 32, sharedBytes = 0, cluster = 1;
  std::vector<GpuTensor> tensors;
};

/// An image that is PTX, [0, ptxBytes), and machine code after it where it was assembled.
struct GpuCode {
  std::string chip; ///< empty: the image is not for a GPU
  int64_t ptxBytes = 0, cubinOffset = 0, cubinBytes = 0;
  llvm::StringMap<GpuGrid> grids;       ///< by the symbol of a phase
  llvm::StringMap<GpuProduct> products; ///< likewise, of what a library does

  bool isPresent() const { return !chip.empty(); }
};

} // namespace mlir::fsdp

#endif // FSDP_IR_GPUCODE_H
