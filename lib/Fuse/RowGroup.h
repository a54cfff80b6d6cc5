//===- RowGroup.h - What is computed for a chunk of rows together -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Step 2 of ChunkRows.cpp: the ops around a wide result, and their rows.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_FUSE_ROWGROUP_H
#define FSDP_LIB_FUSE_ROWGROUP_H

#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {

int64_t tensorBytes(Type of);
inline int64_t tensorBytes(Value v) { return tensorBytes(v.getType()); }

/// The dimension of an operand that is the loop `loop`: -1 where it has none, or nothing where it
/// is not a dimension alone.
std::optional<int> findDimension(AffineMap map, unsigned loop);
/// Values that the bodies of `op` read from outside.
SmallVector<Value> getCaptures(Operation *op);

/// The ops that one wide result is computed by and used up in.
class RowGroup {
public:
  RowGroup(linalg::LinalgOp seed, unsigned rowLoop, int64_t limit)
      : block(seed->getBlock()), limit(limit) {
    rowLoops[seed] = rowLoop;
    members.insert(seed);
  }

  /// Steps 2: false where a result would have to be whole.
  bool grow();
  /// Step 3, in front of `last()`.
  void write(int64_t chunkRows);

  /// Is a wide result used up: summed over columns or rows?
  bool reduces() const;
  int64_t countRows() const;
  /// Of the wide results that are alive together, for one row.
  int64_t countRowBytes() const;
  Operation *last() const;

private:
  bool addUsers(Value wide);
  bool addMember(Operation *op);
  bool addBetween();
  void addRowScalars();
  llvm::SetVector<Operation *> findReaders(Operation *end) const;
  SmallVector<Operation *> getOrdered() const;
  bool readsRowsByLoop(linalg::LinalgOp op, unsigned loop) const;
  std::optional<unsigned> findRowLoop(linalg::LinalgOp op) const;
  bool isOverRows(Value v) const { return rowDims.contains(v); }
  void recordResults(linalg::LinalgOp op);
  void writeMember(OpBuilder &b, linalg::LinalgOp op, int64_t begin, int64_t rows,
                   IRMapping &mapping);

  Block *block;
  int64_t limit;
  llvm::SetVector<Operation *> members;
  llvm::SmallDenseMap<Operation *, unsigned> rowLoops;
  llvm::SmallDenseMap<Value, unsigned> rowDims; ///< results with a dimension of rows
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_FUSE_ROWGROUP_H
