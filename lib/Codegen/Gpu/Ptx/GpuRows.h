//===- GpuRows.h - Neighbours in memory, many bytes at a time ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_PTX_GPUROWS_H
#define FSDP_LIB_CODEGEN_GPU_PTX_GPUROWS_H

#include "GpuBuilder.h"

namespace mlir::fsdp {

/// The `count` elements from `place` on, which is aligned to `aligned` of them.
SmallVector<Value> loadRow(GpuBuilder &b, const Pointer &place, int64_t count, int64_t aligned);
/// Stores them, one after another.
void storeRow(GpuBuilder &b, ArrayRef<Value> values, const Pointer &place, int64_t aligned);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_PTX_GPUROWS_H
