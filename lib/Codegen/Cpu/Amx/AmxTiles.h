//===- AmxTiles.h - Products of bf16 in AMX tiles ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_AMX_AMXTILES_H
#define FSDP_LIB_CODEGEN_CPU_AMX_AMXTILES_H

#include "Codegen/Kernel/CodeBuilder.h"

namespace mlir::fsdp::amx {

/// Rows, columns and steps (pairs of k) of a tile register.
static constexpr int64_t tileSize = 16;
/// Number of tile registers, and bytes of their configuration.
static constexpr int64_t numRegisters = 8, configBytes = 64;

/// Sums of rowTiles × colTiles tiles of f32, and operands as pairs of bf16 in i32. All distances
/// are in elements.
struct Product {
  int64_t rowTiles = 1, colTiles = 1;
  Pointer left;          ///< row 0, step 0 of the left operand
  int64_t leftRow = 0;   ///< from a row to the next within a tile; steps of a row are contiguous
  int64_t leftTile = 0;  ///< from a tile of rows to the next
  int64_t leftStep = 0;  ///< 1/16 of the distance from 16 steps to the next 16
  Pointer right;         ///< step 0, column 0 of the right operand
  int64_t rightStep = 0; ///< from a step to the next; columns of a step are contiguous
  Pointer sums;
  Value sumRow;          ///< from a row of sums to the next
  bool emulated = false; ///< loops with the same arithmetic, for any CPU
};

/// Emits sums = start + Σ over `steps` of left · right, where start is the sums in memory if
/// `accumulate`, otherwise `constant` (f32). `steps` is a multiple of 16. `beside`, unless null,
/// emits additional code, given the first of each 16 steps.
void emitProduct(CodeBuilder &b, const Product &product, Value steps, Value accumulate,
                 TypedAttr constant, function_ref<void(Value)> beside = nullptr);

/// Emits the configuration of all tile registers as 16 rows of 64 bytes. `place` points to
/// configBytes bytes.
void emitConfigure(CodeBuilder &b, const Pointer &place);
/// Emits the release of the tile registers, which makes switches between threads cheaper.
void emitRelease(CodeBuilder &b);

} // namespace mlir::fsdp::amx

#endif // FSDP_LIB_CODEGEN_CPU_AMX_AMXTILES_H
