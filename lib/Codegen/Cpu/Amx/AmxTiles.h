//===- AmxTiles.h - Products of bf16 in AMX tiles ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_AMX_AMXTILES_H
#define FSDP_LIB_CODEGEN_CPU_AMX_AMXTILES_H

#include "Codegen/Kernel/CodeBuilder.h"

namespace mlir::fsdp::amx {

/// Number of rows, of columns and of steps (pairs of k) of a tile register.
static constexpr int64_t tileSize = 16;
/// Number of tile registers, and size of their configuration in bytes.
static constexpr int64_t numRegisters = 8, configBytes = 64;

/// A product of matrices whose sums are rowTiles × colTiles tiles of f32. The operands hold pairs
/// of bf16 as i32. All distances are in elements.
struct Product {
  int64_t rowTiles = 1, colTiles = 1;
  Pointer left;          ///< address of row 0, step 0 of the left operand
  int64_t leftRow = 0;   ///< distance between rows of a tile; steps of a row are contiguous
  int64_t leftTile = 0;  ///< distance between tiles of rows
  int64_t leftStep = 0;  ///< distance between blocks of 16 steps, divided by 16
  Pointer right;         ///< address of step 0, column 0 of the right operand
  int64_t rightStep = 0; ///< distance between steps; columns of a step are contiguous
  Pointer sums;
  Value sumRow;          ///< distance between rows of sums
  bool emulated = false; ///< true: emit loops with the arithmetic of AMX, for any CPU
};

/// Emits sums = start + Σ over `steps` of left · right. `start` is the old value of the sums in
/// memory if `accumulate` is true, otherwise `constant` (f32). `steps` is a multiple of 16.
/// `beside`, if given, is called with the first step of each 16 steps and emits additional code.
void emitProduct(CodeBuilder &b, const Product &product, Value steps, Value accumulate,
                 TypedAttr constant, function_ref<void(Value)> beside = nullptr);

/// Configures all tile registers as 16 rows of 64 bytes. `place` is a buffer of configBytes bytes.
void emitConfigure(CodeBuilder &b, const Pointer &place);
/// Releases the tile registers, so that the operating system need not save them for the thread.
void emitRelease(CodeBuilder &b);

} // namespace mlir::fsdp::amx

#endif // FSDP_LIB_CODEGEN_CPU_AMX_AMXTILES_H
