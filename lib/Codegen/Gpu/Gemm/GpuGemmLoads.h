//===- GpuGemmLoads.h - Tiles of factors in shared memory -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rows of a tile follow each other without a gap; chunk c of 16 bytes of row r stands at
// c ^ turn(r), so that eight rows of ldmatrix, and the rows of one copy, lie in different
// banks:
//
//   bytes of a row   turn
//   32               r / 4 % 2
//   64               r / 2 % 4
//   128 and more     r % 8; of numbers that are read one by one, eight neighbours of each of four
//                    rows, 2 (r % 4)
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMMLOADS_H
#define FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMMLOADS_H

#include "Codegen/Gpu/Ptx/Sm80Tiles.h"
#include "GpuGemm.h"

namespace mlir::fsdp::gemm {

/// Whether a side's numbers are read one by one: f32 across k, for which there is no ldmatrix.
bool isReadSingly(const GpuPlan &plan, const GpuSide &side);
/// Bytes from the begin of a tile: chunk `chunk` of row `row`.
Value emitTurned(GpuBuilder &b, const GpuPlan &plan, const GpuSide &side, Value row, Value chunk);
/// Of the place `turned`, the one `rows` (a multiple of 8) and `bytes` further, where `bytes` does
/// not carry.
Value shiftTurned(GpuBuilder &b, int64_t rowBytes, Value pointer, Value turned, int64_t rows,
                  int64_t bytes);

/// Fetches the tiles of one side.
class TileLoader {
public:
  TileLoader(tile::Sm80Tiles &b, const Problem &problem, const GpuPlan &plan, const GpuSide &side,
             const Operand &operand, Pointer binding)
      : b(b), problem(problem), plan(plan), side(side), operand(operand), binding(binding) {}

  /// Which tile: its first row (column) of the result, and the digits around.
  void place(const Position &outer, Value first);
  /// Begins to fetch tile `kBlock` of k to `target`, by all threads.
  void fetch(Value target, Value kBlock);

private:
  /// What one thread copies at a time.
  struct Unit {
    Value target; ///< bytes from the tile's begin
    Value source; ///< element, without the digits of k
    Value rows;   ///< neighbours that exist of it, or null when all do
    Value k;      ///< its first, within the tile
  };
  Unit makeUnit(int64_t number);
  Unit makeUnit(Value number);
  Unit makeUnit(Value row, Value col);
  Value countUnits(Value first, Value limit, bool inUnit);
  void copy(const Unit &unit, Value target, Value kFirst, Value kOffset);
  void copyAsync(Value target, Value source, Value count);
  void copyMapped(Value target, Value source, Value count);
  SmallVector<Value> loadElements(Value source);
  int64_t bytes() const { return b.elementBytes(); }
  int64_t unitsPerRow() const { return side.rowBytes / (side.unit * bytes()); }
  int64_t unitsOfThread() const {
    return llvm::divideCeil(side.tileRows * unitsPerRow(), b.threads);
  }

  tile::Sm80Tiles &b;
  const Problem &problem;
  const GpuPlan &plan;
  const GpuSide &side;
  const Operand &operand;
  Pointer binding;
  Position outer;
  Value first, common;
  SmallVector<Unit> units; ///< where they are few
};

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMMLOADS_H
