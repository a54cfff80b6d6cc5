//===- SplitRewrite.h - The program of one rank of an axis ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PARTITION_SPLITREWRITE_H
#define FSDP_LIB_SHARD_PARTITION_SPLITREWRITE_H

#include "SplitGroup.h"

namespace mlir::fsdp {

/// Returns `type` with the size that a rank of `axis` has of the split dimension.
RankedTensorType getSliceType(Type type, const TensorSplit &split, const SplitAxis &axis);

/// Rewrites a function to the program of one rank of the axis of `group`.
class SplitRewrite {
public:
  SplitRewrite(func::FuncOp func, const SplitGroup &group)
      : func(func), group(group), axis(group.getAxis()), b(func.getContext()) {}

  void run();

  /// Adds `partial` over the ranks by a reduce-scatter, and returns this rank's rows of the sum.
  Value scatterRows(Value partial, const TensorSplit &split);
  /// Returns the rows of all ranks. `rows` has those of this rank.
  Value gatherRows(Value rows, const TensorSplit &split);
  Value shareRows(Value whole);

  bool keepsWideSums = false; ///< whether partial sums are f32 although readers round them
  bool hasRing = false;       ///< whether keys and values travel from rank to rank
  int64_t numReduced = 0, numEntered = 0;

private:
  /// On the axis `context`, each rank computes a part of the cotangents of parameters and of values
  /// that only parameters determine. All ranks compute the cotangents of sums over the ranks, and
  /// of values that depend on such sums.
  enum class Cotangent { None, Part, Whole };

  void resize(Operation *op, const OpSplits &splits);
  void setOperands(Operation *op, const OpSplits &splits);
  Value sliceUniform(Value value, const TensorSplit &split);
  Value slice(Value value, const TensorSplit &split);
  template <typename Op>
  Value createOnce(DenseMap<Value, Value> &known, Value value);
  Value enter(Value value);
  Value share(Value value);
  void addResults(Operation *op);
  Cotangent getCotangent(Value value);
  void visitWhole(Operation *op);
  ArrayAttr getAxes() { return b.getStrArrayAttr({axis.name}); }
  FlatSymbolRefAttr getMesh() { return FlatSymbolRefAttr::get(b.getContext(), "mesh"); }

  // HeadRewrite.cpp
  Value pick(Value whole, const TensorSplit &split);

  // AttentionIndices.cpp
  bool needsCoordinate() const;
  void addCoordinate();
  void shiftIndices(AttentionOp op, int64_t dim);

  // VocabularyRewrite.cpp
  void maskRows(GatherRowsOp op);
  void shareClasses(CrossEntropyOp op);

  // RowRewrite.cpp
  bool readsPieces() const;

  // SequenceRewrite.cpp
  Value transpose(Value value, ArrayRef<int64_t> order);
  Value toFront(Value value, int64_t dim, bool isView);
  Value fromFront(Value flat, RankedTensorType type, int64_t dim, bool isView);
  Value stripesToFront(Value value, int64_t dim);
  Value stripesFromFront(Value flat, RankedTensorType type, int64_t dim);
  Value cut(Value value, const TensorSplit &split,
            function_ref<Value(RankedTensorType, Value)> cut);
  Value gather(Value value, RankedTensorType type, int64_t dim, bool isView);
  void readKeys(AttentionOp op);
  Value countTargets(Location loc, Value targets, int64_t ignored);
  void weighLoss(CrossEntropyOp op, Value allTargets);

  func::FuncOp func;
  const SplitGroup &group;
  SplitAxis axis;
  OpBuilder b;
  DenseMap<Value, Value> entered; ///< the reduce_cotangent of each whole value
  DenseMap<Value, Value> shared;  ///< the share_cotangent of each whole value
  DenseSet<Value> sums;           ///< values with the cotangent `Whole`
  llvm::MapVector<std::pair<Value, Attribute>, Value> slices; ///< own slices of whole values
  llvm::MapVector<std::pair<Value, Attribute>, Value> picks;  ///< own parts of whole values
  llvm::SetVector<linalg::GenericOp> narrowReaders;           ///< maps that read narrow sums
  DenseMap<Operation *, Value> targets; ///< whole targets of each cross-entropy
  Value coordinate; ///< argument that contains the coordinate of the rank on the axis
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PARTITION_SPLITREWRITE_H
