//===- Fragment.h - A matrix in registers -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A fragment is a small matrix held in registers as SSA values. The layout of a fragment defines
// which element is in lane l of register i. Targets differ only in the layout:
//
//   rows of vectors (CPU)   register 0: (0, 0) (0, 1) .. (0, L-1)
//                           register 1: (0, L) ..                     then row 1
//   mma accumulator (GPU)   lane l of a warp, registers 0 .. 3 of each 16 x 8 tile:
//                           (l/4, 2 (l%4) + {0, 1}), (l/4 + 8, 2 (l%4) + {0, 1});
//                           tiles in order:   along a row, then the next 16 rows
//
// The code that emits elementwise ops and ops on rows is the same for all targets, because it reads
// only the layout.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_FRAGMENT_H
#define FSDP_LIB_CODEGEN_KERNEL_FRAGMENT_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::fsdp::tile {

class Layout {
public:
  /// Returns the layout in which each register holds `lanes` consecutive elements of a row. `cols`
  /// must be a multiple of `lanes`.
  static Layout rowVectors(int64_t rows, int64_t cols, int64_t lanes) {
    return Layout(rows, cols, lanes, false);
  }
  /// Returns the layout of an accumulator of the mma instructions in a warp. `rows` must be a
  /// multiple of 16, and `cols` must be a multiple of 8.
  static Layout mmaSums(int64_t rows, int64_t cols) { return Layout(rows, cols, 32, true); }

  int64_t numRows() const { return rows; }
  int64_t numCols() const { return cols; }
  int64_t numLanes() const { return lanes; }
  int64_t numRegisters() const { return rows * cols / lanes; }
  int64_t registersPerRow() const { return cols / lanes; }
  /// Returns row and column of the element in lane `lane` of register `reg`.
  std::pair<int64_t, int64_t> place(int64_t reg, int64_t lane = 0) const {
    if (!isMma)
      return {reg / registersPerRow(), reg % registersPerRow() * lanes + lane};
    int64_t piece = reg / 4, perRow = cols / 8;
    return {piece / perRow * 16 + reg % 4 / 2 * 8 + lane / 4,
            piece % perRow * 8 + lane % 4 * 2 + reg % 2};
  }
  /// Returns the number of rows in which one lane holds elements.
  int64_t rowsOfLane() const { return isMma ? rows / 8 : rows; }
  /// A lane holds elements in rowsOfLane() rows. Returns the index, among these rows, of the row
  /// that contains the element in register `reg`.
  int64_t rowOf(int64_t reg) const {
    return isMma ? reg / 4 / (cols / 8) * 2 + reg % 4 / 2 : place(reg).first;
  }

private:
  Layout(int64_t rows, int64_t cols, int64_t lanes, bool isMma)
      : rows(rows), cols(cols), lanes(lanes), isMma(isMma) {}
  int64_t rows, cols, lanes;
  bool isMma;
};

struct Fragment {
  Layout layout;
  SmallVector<Value> registers;
};

} // namespace mlir::fsdp::tile

#endif // FSDP_LIB_CODEGEN_KERNEL_FRAGMENT_H
