//===- Ptxas.h - Search path of NVIDIA's assembler --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_GPU_PTXAS_H
#define FSDP_CODEGEN_GPU_PTXAS_H

#include "mlir/Support/LLVM.h"

namespace mlir::fsdp {

/// Lists the places where ptxas is searched, as text for messages.
inline constexpr StringLiteral ptxasPlaces = "PATH, CUDA_HOME, CUDA_PATH or /usr/local/cuda";

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_GPU_PTXAS_H
