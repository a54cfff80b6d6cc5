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

/// Returns the dimension of an operand whose index is the loop `loop`, where `map` is the indexing
/// map of the operand. Returns -1 if the loop does not occur in the map. Returns nothing if the
/// loop occurs in any other way.
std::optional<int> findDimension(AffineMap map, unsigned loop);
/// Returns the values that the bodies of `op` read from outside.
SmallVector<Value> getCaptures(Operation *op);

/// A group of ops: a seed that computes a wide result, and the ops that read or reduce wide
/// results.
class RowGroup {
public:
  RowGroup(linalg::LinalgOp seed, unsigned rowLoop, int64_t limit)
      : block(seed->getBlock()), limit(limit) {
    rowLoops[seed] = rowLoop;
    members.insert(seed);
  }

  /// Adds the members (step 2). Returns false if the group cannot be divided into chunks, because a
  /// wide result is needed as a whole, or because no member but the seed reduces a wide result.
  bool grow();
  ArrayRef<Operation *> getMembers() const { return members.getArrayRef(); }
  /// Writes the chunks of rows after the op `last()`, and erases the members (step 3 of
  /// ChunkRows.cpp). Returns the range of ops from the place of the first member to the last new
  /// op.
  llvm::iterator_range<Block::iterator> write(int64_t chunkRows);

  int64_t countRows() const;
  /// Returns the largest number of bytes, per row, of wide results that are alive at the same time.
  int64_t countRowBytes() const;
  Operation *last() const;

private:
  /// Returns true if a member other than the seed reduces a wide result over columns or rows.
  bool reduces() const;
  bool addUsers(Value wide);
  bool addSum(AllReduceOp op);
  bool addMember(Operation *op);
  bool addBetween();
  void addRowScalars();
  llvm::SetVector<Operation *> findReaders(Operation *end) const;
  SmallVector<Operation *> getOrdered() const;
  bool readsRowsByLoop(linalg::LinalgOp op, unsigned loop) const;
  std::optional<unsigned> findRowLoop(linalg::LinalgOp op) const;
  bool isOverRows(Value v) const { return rowDims.contains(v); }
  void recordResults(linalg::LinalgOp op);
  void writeMember(OpBuilder &b, Operation *member, int64_t begin, int64_t rows,
                   IRMapping &mapping);

  Block *block;
  int64_t limit;
  llvm::SetVector<Operation *> members;
  llvm::SmallDenseMap<Operation *, unsigned> rowLoops;
  /// Maps each value that has the rows of the group to its dimension of rows.
  llvm::SmallDenseMap<Value, unsigned> rowDims;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_FUSE_ROWGROUP_H
