//===- RowGroup.h - Ops computed by chunks of rows --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements step 2 of ChunkRows.cpp: the group of ops around a wide result, and their rows.
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

/// Returns the dimension of an operand that the loop `loop` indexes, or -1 if the loop does not
/// occur. Returns nothing if an index contains the loop but is not equal to it.
std::optional<int> findDimension(AffineMap map, unsigned loop);
/// Returns the values that the bodies of `op` read from outside.
SmallVector<Value> getCaptures(Operation *op);

/// A group of ops that compute wide results and reduce them.
class RowGroup {
public:
  RowGroup(linalg::LinalgOp seed, unsigned rowLoop, int64_t limit)
      : block(seed->getBlock()), limit(limit) {
    rowLoops[seed] = rowLoop;
    members.insert(seed);
  }

  /// Runs step 2. Returns false if a whole wide result would have to exist.
  bool grow();
  /// Runs step 3. Writes the chunks of rows after the op `last()`.
  void write(int64_t chunkRows);

  /// Returns true if a member sums a wide result over columns or rows.
  bool reduces() const;
  int64_t countRows() const;
  /// Returns the bytes of one row of the wide results that are alive at the same time.
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
  llvm::SmallDenseMap<Value, unsigned> rowDims; ///< for each value, its dimension that counts rows
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_FUSE_ROWGROUP_H
