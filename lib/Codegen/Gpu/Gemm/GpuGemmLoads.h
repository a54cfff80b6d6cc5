//===- GpuGemmLoads.h - Tiles of factors in shared memory -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rows of a tile follow one another without gaps. Chunk c (16 bytes) of row r is stored at the
// place of chunk c ^ s(r). Therefore the eight rows of an ldmatrix, and the rows of one copy, are
// in different banks:
//
//   bytes of a row   s(r)
//   32               r / 4 % 2
//   64               r / 2 % 4
//   128 and more     r % 8, or 2 (r % 4) for elements that are read one by one
//
// If elements are read one by one, a warp reads eight adjacent elements in each of four rows.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMMLOADS_H
#define FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMMLOADS_H

#include "Codegen/Gpu/Ptx/Sm80Tiles.h"
#include "GpuGemm.h"

namespace mlir::fsdp::gemm {

/// Returns true if the elements of a factor are read one by one. This is necessary for f32 elements
/// if each row of the tile belongs to one value of k, because ldmatrix cannot transpose f32
/// elements.
bool isReadSingly(const GpuPlan &plan, const GpuSide &side);
/// Returns the byte offset of chunk `chunk` of row `row` from the start of a tile.
Value emitSwizzled(GpuBuilder &b, const GpuPlan &plan, const GpuSide &side, Value row, Value chunk);
/// Returns the address of an element of the tile at `pointer`. The element is `rows` rows (a
/// multiple of 8) below and `bytes` bytes to the right of the element at the offset `swizzled`.
Value shiftSwizzled(GpuBuilder &b, int64_t rowBytes, Value pointer, Value swizzled, int64_t rows,
                    int64_t bytes);

/// Emits the copies of the tiles of one factor.
class TileLoader {
public:
  TileLoader(tile::Sm80Tiles &b, const Problem &problem, const GpuPlan &plan, const GpuSide &side,
             const Operand &operand, Pointer binding)
      : b(b), problem(problem), plan(plan), side(side), operand(operand), binding(binding) {}

  /// Selects the tiles of a block of threads: `first` is the first row (or column) of the result,
  /// and `outer` contains the outer digits.
  void place(const Position &outer, Value first);
  /// Starts to copy tile `kBlock` of k to `target` with all threads.
  void fetch(Value target, Value kBlock);

private:
  /// The elements that one copy of a thread transfers.
  struct Unit {
    Value target; ///< offset from the start of the tile, in bytes
    Value source; ///< offset of the elements in the source for the first tile of k, in elements
    Value rows;   ///< how many elements of the unit exist; null if all exist
    Value k;      ///< first value of k of the unit within the tile
  };
  Unit makeUnit(int64_t number);
  Unit makeUnit(Value number);
  Unit makeUnit(Value row, Value col);
  Value countUnits(Value first, Value limit, bool inParts);
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
  SmallVector<Unit> units; ///< the units of this thread if there are few; otherwise empty
};

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMMLOADS_H
