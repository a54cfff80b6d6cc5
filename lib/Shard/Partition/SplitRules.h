//===- SplitRules.h - How an op ties the splits of its values ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One operand or result of an op is split over an axis along some dimension. A rule says how the
// other operands and results must then be split, so that each rank can run the op on its slices.
//
//   op                     loop or dimension that is split      other operands and results
//   linalg op              parallel loop                        those that the loop indexes
//   linalg op, sum         reduced loop                         results are partial sums
//   expand, collapse       first dimension of a group           the dimension that contains it
//   extract_slice          a dimension that is not sliced,      the same, or these blocks
//                          or a slice of whole blocks
//   attention              heads, or the leading dimension      the same of all operands, o, lse;
//                                                               fewer heads of keys than ranks
//                                                               have copies, one head is whole
//                          rows (axis `context` only)           rows of q, k, v, o and lse; a
//                                                               rank reads all k and v
//   gather_rows            columns of the table                 last dimension of the rows
//                          rows of the table (axis `tensor`)    rows are partial sums
//                          ids (axis `context` only)            the same dimension of ids and rows
//   cross_entropy          rows (axis `context` only)           rows of logits, targets, lse; the
//                                                               loss is a part of a mean
//                          classes (axis `tensor` only)         logits; loss and lse are whole
//   collective of another axis                                  the same, or blocks of all ranks
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PARTITION_SPLITRULES_H
#define FSDP_LIB_SHARD_PARTITION_SPLITRULES_H

#include "fsdp/IR/TensorSplit.h"

namespace mlir::fsdp {

/// An axis of the mesh over which values are split.
struct SplitAxis {
  StringRef name;
  int64_t ranks;
  /// Rank c has the rows c, c + ranks, c + 2 · ranks, .. of a block, and not neighbouring rows.
  bool striped = false;
  /// Whether shapes are those of the program of one rank.
  bool isRank = false;
  /// Whether rows are split of values that are otherwise whole on the axis `tensor`.
  bool rows = false;
  /// Returns the number of parts of a split dimension.
  int64_t countParts(const TensorSplit &split) const { return ranks / split.copies; }
  bool isContext() const { return name == contextAxis; }
};

/// An operand or a result of an op.
struct ValuePlace {
  bool isResult;
  unsigned index;
};

/// The splits of all operands and results of an op. A value without a split is whole.
struct OpSplits {
  SmallVector<std::optional<TensorSplit>> operands, results;
  /// Whether the results are partial sums, which the ranks must add.
  bool partial = false;
  /// Number of the split loop of a linalg op, else 0. An op can be split along one loop only.
  unsigned loop = 0;

  OpSplits() = default;
  explicit OpSplits(Operation *op) : operands(op->getNumOperands()), results(op->getNumResults()) {}
};

/// Which of several dimensions of size 1 is split.
enum class UnitSplit { None, First, Last };

/// Returns the splits of all operands and results of `op`, if the value at `place` has the split
/// `split`. If the op cannot be split in this way, returns nothing and sets `why` to the reason,
/// which completes a sentence such as "the op ...".
///
/// In the program of one rank, a split dimension may have the size 1. If a reshape expands a split
/// dimension to dimensions of which the first have the size 1, `units` selects whether the first
/// one of them is split, the last one, or the first larger one.
std::optional<OpSplits> deriveSplits(const SplitAxis &axis, Operation *op, ValuePlace place,
                                     const TensorSplit &split, std::string &why,
                                     UnitSplit units = UnitSplit::None);

/// Implements deriveSplits for views, slices and concatenations (SplitViews.cpp).
std::optional<OpSplits> deriveViewSplits(Operation *op, ValuePlace place, const TensorSplit &split,
                                         std::string &why, UnitSplit units);

/// Returns the blocks of dimension `dim` of `source`, if they are the slices that its readers take.
/// Returns nothing if these slices do not cover the dimension without overlap.
SmallVector<int64_t> findBlocks(Value source, int64_t dim);

/// Returns true if a score, mask or dropout function of `op` reads the index of dimension `dim` of
/// the scores: batch, head, row of queries, or row of keys.
bool readsIndex(AttentionOp op, int64_t dim);

/// Returns true if all elements of `value` are equal or undefined, so that an op with the shape of
/// a slice can compute it again: tensor.empty, linalg.fill, or a splat constant.
bool isUniform(Value value);

/// Returns true if `value` is uniform, a constant or a slice of one, so that it has no cotangent.
bool isConstantOrUniform(Value value);

/// Returns true if all elements of `value` are +0 or -0, by a constant or a linalg.fill.
bool isZero(Value value);

/// Returns true if `op` adds products of two or more tensors over a reduced loop.
bool addsProducts(Operation *op);

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PARTITION_SPLITRULES_H
