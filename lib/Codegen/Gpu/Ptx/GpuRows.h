//===- GpuRows.h - Wide loads and stores of contiguous elements --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_PTX_GPUROWS_H
#define FSDP_LIB_CODEGEN_GPU_PTX_GPUROWS_H

#include "GpuBuilder.h"

namespace mlir::fsdp {

/// Loads `count` contiguous elements. The address of `place` must be a multiple of the size of
/// `aligned` elements.
SmallVector<Value> loadRow(GpuBuilder &b, const Pointer &place, int64_t count, int64_t aligned);
/// Stores contiguous elements to `place`, which must be aligned as for loadRow().
void storeRow(GpuBuilder &b, ArrayRef<Value> values, const Pointer &place, int64_t aligned);

/// Returns the elements of a 32-bit word: one element of 32 bits, or two of 16 bits.
SmallVector<Value> unpackWord(GpuBuilder &b, Value word, Type type);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_PTX_GPUROWS_H
