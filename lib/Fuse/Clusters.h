//===- Clusters.h - Group ops into kernels ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_FUSE_CLUSTERS_H
#define FSDP_LIB_FUSE_CLUSTERS_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// The kinds of kernels (attribute `kind` of a dispatch).
enum class ClusterKind { Map, Row, Column, Contract, Attention, Scatter, Scalar, Copy };
StringRef stringify(ClusterKind kind);

/// Ops of one block that become one kernel. All have common leading parallel loops ("rows"). In
/// each row, an op reads only those elements of other members' results that belong to this row.
struct OpCluster {
  SmallVector<Operation *> members; ///< the ops in program order
  ClusterKind kind = ClusterKind::Map;
  SmallVector<int64_t> rows; ///< extents of the common loops
  /// True if all values of the cluster have few elements. The ops then need no common loops.
  bool small = false;
  int64_t size = 0; ///< sum of countOps() over the members
};

/// Returns the number of ops in the regions of \p op, at least 1.
int64_t countOps(Operation *op);

/// Caches the results of isAuxiliary() and isMove(). Each of these functions visits all readers of
/// an op's result, and is called once for each reader. Without the cache, the time for a table that
/// all layers of a model read would grow with the square of the number of layers.
class AuxiliaryOps {
public:
  /// Returns isAuxiliary(op).
  bool contains(Operation *op);
  /// Returns isMove(op).
  bool moves(Operation *op);

private:
  DenseMap<Operation *, bool> auxiliary, moving;
};

/// Groups the tensor ops of `block`. Auxiliary ops (isAuxiliary) are in no cluster.
class ClusterBuilder {
public:
  /// \p maxOps bounds the size of a cluster of several members.
  ClusterBuilder(Block &block, unsigned window, int64_t maxOps);
  ArrayRef<OpCluster> getClusters() const { return clusters; }
  /// Returns the cache, whose results hold for the block before it has dispatches.
  AuxiliaryOps &getAuxiliaryOps() { return auxiliary; }

private:
  void place(Operation *op);
  bool join(Operation *op, unsigned cluster);
  void merge(Operation *op, unsigned cluster, unsigned other);
  bool closesCycle(ArrayRef<Operation *> members, Operation *op);
  bool movesMembers(Value v, const llvm::SmallPtrSetImpl<Operation *> &members);
  bool meetsAtRows(linalg::LinalgOp op, const OpCluster &cluster, unsigned rows);
  unsigned commonRows(linalg::GenericOp op, const OpCluster &cluster);
  SmallVector<unsigned> producers(Operation *op);

  Block &block;
  unsigned window;
  int64_t maxOps;
  AuxiliaryOps auxiliary;
  SmallVector<OpCluster> clusters;
  DenseMap<Operation *, unsigned> clusterOf, position;
};

/// Returns true if the op is copied into each dispatch that uses it, instead of being in a cluster
/// (AuxiliaryOps.cpp).
bool isAuxiliary(Operation *op);
/// Returns true if the op moves elements, or computes a piece of a concatenation, and is auxiliary.
bool isMove(Operation *op);
/// Returns true if the op is elementwise, has one result and contains no expensive arithmetic.
bool isCheapMap(linalg::GenericOp op);
/// Returns true if the op always has a separate kernel, because it reads whole tensors.
bool isAttention(Operation *op);
/// Returns true if the op computes tensors in a kernel, unlike collectives and control flow.
bool isComputation(Operation *op);
/// Returns true if the op is a view of an aligned, contiguous range of its source.
bool isContiguousView(Operation *op);
/// Returns the values that `op` reads, including captures of its regions.
SmallVector<Value> readValues(Operation *op);

} // namespace mlir::fsdp

#endif // FSDP_LIB_FUSE_CLUSTERS_H
