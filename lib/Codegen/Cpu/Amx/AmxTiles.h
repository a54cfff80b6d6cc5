//===- AmxTiles.h - Products of bf16 in AMX tiles ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_AMX_AMXTILES_H
#define FSDP_LIB_CODEGEN_CPU_AMX_AMXTILES_H

#include "F32Slices.h"

namespace mlir::fsdp::amx {

/// A tile register has `tileSize` rows, and `tileSize` columns or steps. A step is a pair of values
/// of k.
static constexpr int64_t tileSize = 16;
/// A CPU has `numRegisters` tile registers. Their configuration has `configBytes` bytes.
static constexpr int64_t numRegisters = 8, configBytes = 64;

/// A product of two matrices. The sums form rowTiles × colTiles tiles of f32. Each i32 of the
/// operands holds a pair of bf16. All distances in this struct are counted in elements.
struct Product {
  int64_t rowTiles = 1, colTiles = 1;
  /// Number of slices of the operands: 1 for bf16, f32Slices for f32. An f32 is the sum of its
  /// slices, and slice 0 is the largest.
  int64_t slices = 1;
  Pointer left;          ///< address of row 0, step 0 of the left operand
  int64_t leftRow = 0;   ///< distance between rows of a tile; steps of a row are contiguous
  int64_t leftTile = 0;  ///< distance between tiles of rows
  int64_t leftStep = 0;  ///< distance between two blocks of 16 steps, divided by 16
  int64_t leftSlice = 0; ///< distance between slices
  Pointer right;         ///< address of step 0, column 0 of the right operand
  int64_t rightStep = 0; ///< distance between steps; columns of a step are contiguous
  int64_t rightSlice = 0;
  Pointer sums;
  Value sumRow; ///< distance between rows of sums
  /// True if loads of the right operand hint that its lines are not read again soon. Such lines
  /// leave the L1 cache first, so that the left operand stays there.
  bool streamsRight = false;
  bool emulated = false; ///< true if loops replace the AMX instructions, so that the code runs on
                         ///< any CPU
};

/// Emits code for sums = start + Σ over `steps` of left · right. `start` is the old value of the
/// sums if `accumulate` is true, otherwise `constant` (f32). `steps` is a multiple of 16. `beside`
/// emits code that runs beside the products of 16 steps. Its argument is the first of these steps.
void emitProduct(CodeBuilder &b, const Product &product, Value steps, Value accumulate,
                 TypedAttr constant, llvm::function_ref<void(Value)> beside = nullptr);

/// Emits the configuration of the tile registers, with 16 rows of 64 bytes each. `place` has
/// configBytes bytes.
void emitConfigure(CodeBuilder &b, const Pointer &place);
/// Emits the release of the tile registers. After the release, the operating system need not save
/// the registers when it switches threads.
void emitRelease(CodeBuilder &b);

} // namespace mlir::fsdp::amx

#endif // FSDP_LIB_CODEGEN_CPU_AMX_AMXTILES_H
