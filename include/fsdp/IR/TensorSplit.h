//===- TensorSplit.h - Parameters of which a rank has a slice ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A tensor is split over the axis `tensor` of T ranks along one dimension. The dimension consists
// of blocks. The rank with coordinate t has part t of each block:
//
//     blocks of 4 and 2 rows, T = 2     | 0 0 1 1 | 0 1 |
//
// A matrix that computes queries, keys and values has three blocks of columns, so that each rank
// has the columns of its heads in all three blocks.
//
// With fewer heads of keys and values than ranks, several neighbours have the same part, a copy:
//
//     2 heads, T = 4, 2 copies          | 01 | 23 |
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_TENSORSPLIT_H
#define FSDP_IR_TENSORSPLIT_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// Axis of the mesh whose ranks read the same samples and have slices of parameters.
inline constexpr llvm::StringLiteral tensorAxis = "tensor";
/// Axis of the mesh whose ranks read the same samples and have parts of the sequence. It consists
/// of neighbours on the axis `shard` (the description of fsdp.mesh).
inline constexpr llvm::StringLiteral contextAxis = "context";
/// Attribute of a parameter argument and of a unit; the description of fsdp.reduce_cotangent
/// defines its values.
inline constexpr llvm::StringLiteral tensorSplitAttr = "fsdp.tensor_split";

struct TensorSplit {
  int64_t dim = 0;
  SmallVector<int64_t> blocks; ///< sizes of the blocks of dimension `dim`
  int64_t copies = 1;          ///< ranks that have the same part; 1 of a parameter

  bool operator==(const TensorSplit &other) const {
    return dim == other.dim && blocks == other.blocks && copies == other.copies;
  }
  /// Returns the size of the dimension.
  int64_t getSize() const;
  /// Returns the split with each block divided by `ranks`.
  TensorSplit divide(int64_t ranks) const;

  DenseI64ArrayAttr toAttribute(MLIRContext *context) const;
  /// Returns the split that `attr` contains, or nothing if `attr` is null or has another form.
  static std::optional<TensorSplit> parse(Attribute attr);
};

/// Returns the split of the parameter `name` of a unit, or nothing if ranks have the whole
/// parameter.
std::optional<TensorSplit> getTensorSplit(UnitOp unit, StringRef name);

/// Returns the shape of the whole parameter `param` of a unit. The type of `param` is that of the
/// slice of a rank.
SmallVector<int64_t> getWholeShape(UnitOp unit, ParamAttr param);

/// Returns true if ranks of the axis `tensor` or `context` run the program together, so that one
/// rank cannot run it.
bool isPartitioned(MeshOp mesh);

/// Verifies the attribute `fsdp.tensor_split` of a unit.
LogicalResult verifyTensorSplits(UnitOp unit);

} // namespace mlir::fsdp

#endif // FSDP_IR_TENSORSPLIT_H
