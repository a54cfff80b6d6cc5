//===- F32Slices.h - f32 as a sum of three bf16 -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_AMX_F32SLICES_H
#define FSDP_LIB_CODEGEN_CPU_AMX_F32SLICES_H

#include "Codegen/Kernel/CodeBuilder.h"

namespace mlir::fsdp::amx {

/// The number of bf16 slices of an f32.
static constexpr int64_t f32Slices = 3;
/// The pairs of slices (of the left and of the right operand) whose products are computed, in this
/// order.
static constexpr std::pair<int64_t, int64_t> sliceProducts[] = {{2, 0}, {1, 0}, {1, 1},
                                                                {0, 1}, {0, 2}, {0, 0}};

/// The slices of an f32 or of a vector of f32, as integers of 32 bits. The upper 16 bits of an
/// integer are the slice, a bf16. Its lower 16 bits have no meaning.
using Slices = SmallVector<Value, f32Slices>;

/// Returns the slices of `number`, an f32 or a vector of f32. Slice 0 is the largest. Their sum is
/// the number. The slices of an infinity, of a NaN and of a number of 3.39e38 or more contain a
/// NaN.
Slices sliceF32(CodeBuilder &b, Value number);

/// Returns a slice as a bf16 or a vector of bf16 with as many elements.
Value sliceBf16(CodeBuilder &b, Value bits);

/// Returns pairs of bf16, as integers of 32 bits. The lower half of a pair is the slice `first`,
/// and its upper half is the slice `second`.
Value pairSlices(CodeBuilder &b, Value first, Value second);

} // namespace mlir::fsdp::amx

#endif // FSDP_LIB_CODEGEN_CPU_AMX_F32SLICES_H
